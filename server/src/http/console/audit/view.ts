import type { ComparedUpTo, StoreFinding } from '../../../audit/read.ts'
import { toShown } from '../../../chains/families.ts'
import { tokenOf } from '../../../movements/fields.ts'
import { networks } from '../../../networks.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { type Locale, showShort, showTime, showUnits } from '../formats.ts'
import { renderChip, renderHead, renderHidden, renderTable, renderTransaction, type Tone } from '../parts.ts'
import type { Screen } from '../screen.ts'
import type { Texts } from '../texts/choose.ts'

export type Recoverable = (finding: Pick<StoreFinding, 'network' | 'transaction'>) => boolean

export type AuditView = {
  readonly findings: readonly StoreFinding[]
  readonly compared: readonly ComparedUpTo[]
  readonly canRecover: Recoverable
  readonly said: keyof Texts['audit']['results'] | null
}

type State = keyof Texts['audit']['states']

const tones: Readonly<Record<State, Tone>> = {
  ...{ open: 'bad', looking: 'busy', comparing: 'busy', recovered: 'good', explained: '', over: '' },
}

export function renderAudit(screen: Screen, { findings, compared, canRecover, said }: AuditView): Html {
  const texts = screen.texts.audit
  const isGood = said === 'asked' || said === 'explained'
  const isOver = (one: StoreFinding) => !['open', 'looking', 'comparing'].includes(stateOf(one))
  const [open, over] = [findings.filter((one) => !isOver(one)), findings.filter(isOver)]
  const list = (some: readonly StoreFinding[]) =>
    some.map((one) => renderFinding(screen, one, canRecover(one)))
  return html`${renderHead(texts.title, { about: html`<p class="soft words">${texts.about}</p>` })}
${said && html`<p class="note${isGood && ' good'}" role="status">${texts.results[said]}</p>`}
${
  open.length > 0
    ? html`<section aria-label="${texts.open}">${list(open)}</section>`
    : html`<section class="pane empty"><h2>${texts.none}</h2><p class="soft">${
        compared.length > 0 ? texts.noneAbout : texts.notYet
      }</p></section>`
}
${compared.length > 0 && renderCompared(screen, compared)}
${over.length > 0 && html`<h2>${texts.before}</h2><section aria-label="${texts.before}">${list(over)}</section>`}`
}

function stateOf({ resolvedAt, kind, isAwaited, note, lookUp }: StoreFinding): State {
  if (resolvedAt) return kind === 'missing' ? 'recovered' : 'over'
  if (note !== null) return 'explained'
  if (isAwaited) return 'comparing'
  return lookUp === 'looking' ? 'looking' : 'open'
}

function renderFinding(screen: Screen, one: StoreFinding, canRecover: boolean): Html {
  const { locale, base } = screen
  const texts = screen.texts.audit
  const state = stateOf(one)
  const amount = showAmount(locale, one)
  const about = fill(texts.kinds[one.kind].about, {
    ...{ amount, network: nameOf(one.network), day: showDay(locale, one.day) },
    wallet: one.wallet === '' ? '' : html`<bdi>${showShort(toShown(one.network, one.wallet))}</bdi>`,
  })
  const facts = [
    one.transaction !== '' && html`${texts.transaction} ${renderTransaction(one.network, one.transaction)}`,
    one.checkoutId !== null && html`<a href="${base}/checkouts/${one.checkoutId}">${texts.checkout}</a>`,
    html`${texts.found} ${showTime(locale, one.foundAt, screen.now)}`,
  ].filter((each) => each !== false)
  const explained =
    one.note !== null &&
    html`<p class="words"><bdi>${one.note}</bdi><br><small class="soft"><bdi>${one.notedBy}</bdi></small></p>`
  return html`<section class="pane stack" id="finding-${one.id}">
<div class="row apart"><h2>${texts.kinds[one.kind].title}</h2>${renderChip(texts.states[state], tones[state])}</div>
<p>${about}</p><p class="soft">${facts.map((fact, i) => html`${i > 0 && ' · '}${fact}`)}</p>
${explained}${state === 'open' && renderActs(screen, one, canRecover)}</section>`
}

function renderActs(screen: Screen, one: StoreFinding, canRecover: boolean): Html {
  const { base, formFields } = screen
  const texts = screen.texts.audit
  const hint = html`<p class="words">${texts.kinds[one.kind].act}</p>`
  if (!screen.may('payments:write')) return hint
  const finding = renderHidden('findingId', one.id)
  const isMissing = one.kind === 'missing' && one.transaction !== ''
  return html`${hint}${isMissing && !canRecover && html`<p class="words">${texts.cannotRecover}</p>`}${
    one.lookUp === 'not_found' && isMissing && html`<p class="note" role="alert">${texts.notFound}</p>`
  }${
    isMissing &&
    canRecover &&
    html`<form method="post" action="${base}/reports/audit/recover">${formFields}${finding}
<div class="buttons"><button>${texts.recover}</button></div></form>`
  }<details id="explain-${one.id}"><summary>${texts.explain}</summary>
<form class="stack" method="post" action="${base}/reports/audit/explain">${formFields}${finding}
<label class="field">${texts.explainLabel}
<textarea name="note" rows="2" maxlength="1000" required autocomplete="off"></textarea></label>
<p class="soft">${texts.explainAbout}</p>
<div class="buttons"><button class="quiet">${texts.explainSave}</button></div></form></details>`
}

function renderCompared(screen: Screen, compared: readonly ComparedUpTo[]): Html {
  const { locale, now } = screen
  const texts = screen.texts.audit
  const rows = compared.map(
    ({ network, wallet, day, troubleSince }) => html`<tr>
<td class="c1"><bdi>${showShort(toShown(network, wallet))}</bdi></td><td class="c2">${nameOf(network)}</td>
<td class="c3">${fill(texts.completeUpTo, { day: showDay(locale, day) })}${
      troubleSince &&
      html`<br><small>${fill(texts.trouble, { time: showTime(locale, troubleSince, now) })}</small>`
    }</td></tr>`,
  )
  return html`<h2>${texts.complete}</h2>${renderTable([texts.wallet, texts.network, texts.upTo], rows, texts.complete)}`
}

function showAmount(locale: Locale, { network, asset, amount }: StoreFinding): string {
  if (asset === '') return ''
  const { decimals, symbol } = tokenOf({ network, asset: toShown(network, asset) })
  return showUnits(locale, amount, decimals, symbol)
}

function nameOf(caip2: string): string {
  return networks.find((each) => each.caip2 === caip2)?.name ?? caip2
}

/** A day in UTC, as the audit compares it. */
function showDay({ tag }: Locale, day: string): string {
  const form = new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeZone: 'UTC' })
  return form.format(new Date(`${day}T12:00:00Z`))
}
