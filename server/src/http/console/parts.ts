import type { FastifyReply } from 'fastify'
import type { NewInvitation } from '../../members/invite.ts'
import { networks } from '../../networks.ts'
import { fill, type Html, html, lines } from '../page/html.ts'
import { showMinute, showShort } from './formats.ts'
import { showsDetails } from './frame/choices.ts'
import type { Page } from './screen.ts'
import type { Texts } from './texts/choose.ts'

type Text = Html | string

/** The top of a screen: its heading, the link up, a sentence about it, and actions. */
export function renderHead(
  title: Text,
  {
    above,
    about,
    aside,
  }: { readonly above?: Html; readonly about?: Text; readonly aside?: Html | null } = {},
): Html {
  const heading = html`<h1>${title}</h1>`
  const said = typeof about === 'string' ? html`<p class="soft">${about}</p>` : about
  const whole = above || said ? html`<div>${above ?? null}${heading}${said ?? null}</div>` : heading
  return html`<div class="head plain">${whole}${aside ?? null}</div>`
}

/** A column's heading, and whether it has numbers. */
type Column = Text | { readonly number: string }

/** Rows that become cards on a small screen. One with a label can be wider than the screen and is scrolled. */
export function renderTable(columns: readonly Column[], rows: readonly Html[], label?: string): Html {
  return renderRows('cards', columns, rows, label)
}

/** Figures that mean nothing without their columns: on a small screen it is scrolled. */
export function renderLedger(columns: readonly Column[], rows: readonly Html[], label: string): Html {
  return renderRows('ledger', columns, rows, label)
}

function renderRows(kind: string, columns: readonly Column[], rows: readonly Html[], label?: string): Html {
  const heads = columns.map((column) =>
    typeof column === 'object' && 'number' in column
      ? html`<th scope="col" class="num">${column.number}</th>`
      : html`<th scope="col">${column}</th>`,
  )
  const region = label !== undefined && html` role="region" aria-label="${label}" tabindex="0"`
  return html`<div class="table"${region}><table class="${kind}">
<thead><tr>${heads}</tr></thead>
<tbody>${rows}</tbody></table></div>`
}

/** A row of a list of facts; nothing where there is nothing to say. */
export function renderFact(name: Text, value: Text | null | undefined): Html | null {
  return value === null || value === undefined ? null : html`<div><dt>${name}</dt><dd>${value}</dd></div>`
}

type Attributes = Readonly<Record<string, string | number | boolean>>

/** An input with its label and a hint. An attribute that is true has no value, one that is false is left out. */
export function renderField(label: Text, name: string, attributes: Attributes = {}, hint?: Text): Html {
  const given = Object.entries(attributes).map(
    ([key, value]) => value !== false && (value === true ? html` ${key}` : html` ${key}="${value}"`),
  )
  return html`<label>${label}<input name="${name}"${given}>${
    hint !== undefined && html`<small>${hint}</small>`
  }</label>`
}

/** One of several choices, with its meaning. */
export function renderChoice(
  name: string,
  value: string,
  isChosen: boolean,
  { title, text }: { readonly title: string; readonly text: string },
): Html {
  return html`<label class="choice"><input type="radio" name="${name}" value="${value}"${
    isChosen && html` checked`
  }><b>${title}</b><small>${text}</small></label>`
}

export function renderHidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`
}

export type Choices = readonly (readonly [value: string, text: string])[]

/** A select of a filter. */
export function renderSelect(name: string, label: string, chosen: string, options: Choices): Html {
  return html`<select name="${name}" aria-label="${label}">${renderOptions(chosen, options)}</select>`
}

/** A select with its label above it. */
export function renderChooser(label: string, name: string, chosen: string, options: Choices): Html {
  return html`<label>${label}<select name="${name}">${renderOptions(chosen, options)}</select></label>`
}

export function renderOptions(chosen: string, options: Choices): Html {
  const option = ([value, text]: Choices[number]) =>
    html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`
  return html`${options.map(option)}`
}

/** A box to tick. */
export function renderCheck(name: string, text: Text, isTicked: boolean): Html {
  const ticked = isTicked && html` checked`
  return html`<label class="check"><input type="checkbox" name="${name}" value="yes"${ticked}>${text}</label>`
}

/** A filter or a tab: the one that is chosen says so. */
export function renderFilter(href: string, text: string, isChosen: boolean): Html {
  return html`<a class="filter" href="${href}"${isChosen && html` aria-current="true"`}>${text}</a>`
}

/** Back to the newest, and on to older ones, where there are any. */
export function renderPager(
  texts: { readonly newest: string; readonly older: string },
  newest: string | null,
  older: string | null,
): Html | null {
  if (newest === null && older === null) return null
  return html`<div class="ends">${
    newest === null ? html`<span></span>` : html`<a class="button quiet" href="${newest}">${texts.newest}</a>`
  }${older !== null && html`<a class="button quiet" href="${older}">${texts.older}</a>`}</div>`
}

export type Tone = 'good' | 'bad' | 'busy' | ''

export function renderChip(text: Text, tone: Tone = ''): Html {
  return html`<span class="chip${tone !== '' && ` ${tone}`}">${text}</span>`
}

/** Why something was refused, shown above it. */
export function renderAlert(text: Text | null): Html | null {
  return text === null ? null : html`<p class="note" role="alert">${text}</p>`
}

/** A step of something that happened, or will. */
export function renderStep(
  title: Html,
  text: Text,
  at: Html | null,
  tone: string,
  more: Html | null = null,
): Html {
  return html`<li${tone !== '' && html` class="${tone}"`}><p class="row apart">${title}${at}</p>
<p class="soft">${text}</p>${more}</li>
`
}

/** The whole record as JSON, for members who chose to see API details. */
export function renderRaw({ request }: Page, title: string, value: unknown, id = 'raw'): Html | null {
  if (!showsDetails(request)) return null
  return html`<details id="${id}"><summary>${title}</summary>
<pre tabindex="0"><code>${lines(JSON.stringify(value, null, 2))}</code></pre></details>`
}

/** A transaction, as a link to the network's explorer if it has one. */
export function renderTransaction(caip2: string, transaction: string): Html {
  const explorerUrl = networks.find((each) => each.caip2 === caip2)?.explorerUrl ?? null
  const short = showShort(transaction)
  return explorerUrl === null
    ? short
    : html`<a href="${explorerUrl}/tx/${transaction}" rel="noreferrer" target="_blank">${short}</a>`
}

type Line = { readonly method?: string; readonly path: string; readonly body?: unknown }

/**
 * The request that shows or does the same as this screen, ready to be copied into a terminal. A name distinguishes
 * several lines on one screen. Null unless the member chose to see API details.
 */
export function renderApiLine(page: Page, { method = 'GET', path, body }: Line, name = ''): Html | null {
  const { ctx, texts, request } = page
  if (!showsDetails(request)) return null
  const how = method === 'GET' ? '' : ` -X ${method}`
  const data =
    body === undefined ? '' : ` -H 'Content-Type: application/json' -d ${quote(JSON.stringify(body))}`
  const url = quote(`${ctx.config.baseUrl}/api/v1${path}`)
  const line = `curl${how} ${url} -H "X-API-Key: $FARTHING_API_KEY"${data}`
  return renderSame(texts, 'api', line, name)
}

/** The operator's command that does the same. */
export function renderCommand(texts: Texts, command: string): Html {
  return renderSame(texts, 'command', command, '')
}

function renderSame(texts: Texts, title: 'api' | 'command', line: string, name: string): Html {
  const id = `same-${title}${name && `-${name}`}`
  return html`<details class="pane" id="${id}"><summary>${texts.frame[title]}</summary>${renderCopied(
    texts,
    line,
  )}</details>`
}

/** A line for a terminal, or a text of several lines, with a button that copies it. */
export function renderCopied({ frame: { copy, copied } }: Texts, line: string): Html {
  const text = lines(line)
  const button = html`<button type="button" class="quiet tiny" data-copy="${text}" data-done="${copied}">${
    copy
  }</button>`
  return html`<div class="copy"><pre tabindex="0"><code>${text}</code></pre>${button}</div>`
}

/** For a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** A page with a secret that is shown once: in the answer itself and in no URL. */
export function sendSecret(
  { send, texts }: Page,
  shown: {
    readonly title: string
    readonly heading?: Html
    readonly about: Text
    readonly secret: string
    readonly copy: string
    readonly back: { readonly href: string; readonly text: string }
  },
): Promise<FastifyReply> {
  const { title, heading, about, secret, copy, back } = shown
  return send({
    title,
    isAlone: true,
    main: html`<h1>${heading ?? title}</h1>
<p>${about}</p>
<code class="link" tabindex="0">${secret}</code>
<form><button type="button" data-copy="${secret}" data-done="${texts.frame.copied}">${copy}</button></form>
<p><a href="${back.href}">${back.text}</a></p>`,
  })
}

type LinkTexts = Readonly<Record<'title' | 'heading' | 'about' | 'mailed' | 'copy' | 'back', string>>

/** The page with the link of an invitation. `purpose` says what it is for; `href` is where to go on. */
export function sendInvitation(
  page: Page,
  { link, invitation: { name, email, expiresAt }, isMailed }: NewInvitation,
  texts: LinkTexts,
  href: string,
  purpose = '',
): Promise<FastifyReply> {
  const { title, heading, about, mailed, copy, back } = texts
  const until = fill(about, { time: showMinute(page.locale, expiresAt) })
  return sendSecret(page, {
    title,
    heading: fill(heading, { name }),
    about: html`${purpose} ${until}${isMailed && html` ${fill(mailed, { email: email ?? '' })}`}`,
    secret: link,
    copy,
    back: { href, text: back },
  })
}
