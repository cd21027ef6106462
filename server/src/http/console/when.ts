import { type Html, html } from '../page/html.ts'

const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })

export function when(time: Date): Html {
  return html`<time datetime="${time.toISOString()}">${format.format(time)} UTC</time>`
}
