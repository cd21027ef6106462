import { fill, type Html, html } from '../page/html.ts'
import type { Language } from './texts/choose.ts'

/** A time, as people of that language write it. */
export function when(time: Date, { tag, texts }: Language): Html {
  const format = new Intl.DateTimeFormat(tag === 'en' ? 'en-GB' : tag, {
    dateStyle: 'medium',
    timeStyle: 'short',
    timeZone: 'UTC',
  })
  return html`<time datetime="${time.toISOString()}">${fill(texts.time, { time: format.format(time) })}</time>`
}
