import { type Html, html } from '../../page/html.ts'
import { showExactTime, showTime } from '../formats.ts'
import { renderFilter, renderHead } from '../parts.ts'
import type { Screen } from '../screen.ts'

const tabs = { keys: '', deliveries: '/deliveries', events: '/events' } as const

/** The head of a tab. */
export function renderTabs({ base, texts: { developers: texts } }: Screen, current: keyof typeof tabs): Html {
  const links = (['keys', 'deliveries', 'events'] as const).map((tab) => {
    const here = tab === current && html` aria-current="page"`
    return html`<a href="${base}/developers${tabs[tab]}"${here}>${texts.tabs[tab]}</a>`
  })
  return renderHead(texts.title, {
    aside: html`<nav class="tabs" aria-label="${texts.parts}">${links}</nav>`,
  })
}

/** The head of a page below a tab. */
export function renderSubhead(title: Html | string, { href, text }: Link): Html {
  return renderHead(title, { above: html`<p><a href="${href}">${text}</a></p>` })
}

type Link = { readonly href: string; readonly text: string }

/** The way back to the first tab. */
export function backOf({ base, texts }: Screen): Link {
  return { href: `${base}/developers`, text: texts.developers.back }
}

export function at({ locale, now }: Screen, time: Date | string): Html {
  return showTime(locale, new Date(time), now)
}

export function exactly({ locale }: Screen, time: Date | string): Html {
  return showExactTime(locale, new Date(time))
}

/** Links below a list: back to its newest entries, and on to older ones. */
export function renderFurther(newest: Link | null, older: Link | null): Html | null {
  const links = [newest, older].filter((each) => each !== null)
  if (links.length === 0) return null
  return html`<section class="pane row">${links.map(({ href, text }) => renderFilter(href, text, false))}</section>`
}

/** Text of several lines, such as JSON or an answer, shown as plain text. */
export function renderText(text: string): Html {
  const lines = text.split('\n').map((line, i) => html`${i > 0 && { html: '\n' }}${line}`)
  return html`<pre tabindex="0"><code>${lines}</code></pre>`
}

/** Enough of a URL to recognise it: without https://, and shortened in the middle. */
export function showUrl(url: string): Html {
  const text = url.replace(/^https:\/\//, '')
  const short = text.length > 48 ? `${text.slice(0, 30)}…${text.slice(-15)}` : text
  return html`<bdi title="${url}">${short}</bdi>`
}
