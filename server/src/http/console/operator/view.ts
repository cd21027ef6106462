import { toShown } from '../../../chains/families.ts'
import type { Queue } from '../../../events/rows.ts'
import { type Network, networks } from '../../../networks.ts'
import type { ChainState, NodeState } from '../../../payments/chain-states.ts'
import type { Settler } from '../../../payments/settlers/rows.ts'
import type { Runway } from '../../../payments/settlers/runway.ts'
import { toSafeNumber } from '../../../safe-number.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { type Locale, showCount, showDuration, showExactTime, showShort, showUnits } from '../formats.ts'
import { renderChip, renderCommand, renderFact, renderHead, renderHidden, renderTable } from '../parts.ts'
import type { Page } from '../screen.ts'
import type { Texts } from '../texts/choose.ts'

/** An account that pays for settlements, and how long its balance lasts, if that is known. */
export type FundedSettler = { readonly settler: Settler; readonly runway: Runway | null }

export function renderSettlers(page: Page, settlers: readonly FundedSettler[]): Html {
  const texts = page.texts.health.settlers
  const columns = [
    ...[texts.settler, texts.network, { number: texts.holds }],
    ...[{ number: texts.cost }, { number: texts.payments }, { number: texts.lasts }],
  ]
  const rows = settlers.map((each) => renderSettler(page, each))
  const isEmpty = rows.length === 0
  return html`${renderHead(texts.title, { about: texts.about })}
${isEmpty ? html`<p class="pane empty">${texts.empty}</p>` : renderTable(columns, rows, texts.title)}
${renderCommand(page.texts, isEmpty ? 'farthing-admin settler create NETWORK' : 'farthing-admin settler list')}`
}

const settlerTones = {
  active: 'good',
  draining: 'busy',
  retired: '',
  unfunded: 'bad',
  stopped: 'bad',
} as const

function renderSettler(page: Page, { settler, runway }: FundedSettler): Html {
  const { locale } = page
  const { settlers: texts, none, unknown } = page.texts.health
  const network = networks.find(({ caip2 }) => caip2 === settler.network)
  const amount = (units: bigint | null | undefined, isNone: string) =>
    units === null || units === undefined || !network ? isNone : showAmount(locale, network, units)
  const isStopped = settler.stoppedAt !== null && settler.state !== 'retired'
  const state = isStopped ? 'stopped' : runway?.isUnfunded ? 'unfunded' : settler.state
  const left = runway?.paymentsLeft ?? null
  const hours = runway?.hoursLeft ?? null
  return html`<tr><td class="c1">${showShort(toShown(settler.network, settler.address))}
${renderChip(texts.states[state], settlerTones[state])}</td>
<td class="c3">${network?.name ?? settler.network}</td>
<td class="num c2">${amount(settler.balanceWei, unknown)}</td>
<td class="num">${amount(runway?.costPerPayment, none)}</td>
<td class="num">${left === null ? none : showCount(locale, left)}</td>
<td class="num c4">${hours === null ? none : showLasting(locale, hours)}</td></tr>`
}

/** Enough digits after the point to compare balances. */
const shownDecimals = 6

function showAmount(locale: Locale, { nativeCurrency }: Network, units: bigint): string {
  const { decimals, symbol } = nativeCurrency
  const cut = 10n ** BigInt(Math.max(0, decimals - shownDecimals))
  return showUnits(locale, units / cut, Math.min(decimals, shownDecimals), symbol)
}

const hourMs = 3_600_000n
/** Beyond a year, the exact number says nothing more. */
const hoursShownMax = 24n * 365n

function showLasting(locale: Locale, hours: bigint): string {
  const shown = hours > hoursShownMax ? hoursShownMax : hours
  const text = showDuration(locale, toSafeNumber(shown * hourMs))
  return hours > hoursShownMax ? `> ${text}` : text
}

/** How far each chain is read, and how the providers of its nodes do. */
export function renderChains(page: Page, chains: readonly ChainState[]): Html {
  const texts = page.texts.health.chains
  return html`${renderHead(texts.title, { about: texts.about })}
${chains.map((chain) => renderChain(page, chain))}
${renderCommand(page.texts, 'farthing-admin doctor')}`
}

function renderChain(page: Page, { network, obstacle, follower, nodes }: ChainState): Html {
  const texts = page.texts.health.chains
  const state = obstacle === null ? renderChip(texts.settles, 'good') : renderChip(texts.settlesNot, 'bad')
  const dispute = follower?.dispute ?? null
  return html`<section class="pane stack"><h2>${network.name} ${state}</h2>
${obstacle !== null && html`<p class="soft words" lang="en">${obstacle}</p>`}
${dispute !== null && html`<p class="note">${fill(texts.dispute, { what: dispute })}</p>`}
${renderChainHead(page, follower)}
${nodes.length === 0 ? html`<p class="soft">${texts.noNodes}</p>` : renderNodes(page, network.name, nodes)}
</section>`
}

function renderChainHead({ texts: { health }, locale }: Page, follower: ChainState['follower']): Html {
  const texts = health.chains
  if (!follower?.headTime || follower.headAgeSeconds === null) return html`<p class="soft">${texts.never}</p>`
  const { headNumber, headTime, headAgeSeconds, safeNumber, finalizedNumber } = follower
  const behind = (number: number) =>
    fill(texts.blocksBehind, { count: showCount(locale, Math.max(0, headNumber - number)) })
  const age = showDuration(locale, headAgeSeconds * 1_000)
  return html`<dl class="list">
${renderFact(texts.head, fill(texts.headAt, { number: showCount(locale, headNumber), age }))}
${renderFact(texts.lag, showExactTime(locale, headTime))}
${renderFact(texts.safe, behind(safeNumber))}
${renderFact(texts.final, behind(finalizedNumber))}
</dl>`
}

function renderNodes(page: Page, name: string, nodes: readonly NodeState[]): Html {
  const { locale } = page
  const { chains: texts, none } = page.texts.health
  const row = ({ provider, record, fault, limits }: NodeState) => {
    const share = record && record.failed > 0 ? ` (${percent(locale, record)})` : ''
    const said = fault && fill(texts.falseTimes, { count: fault.faults, what: fault.fault })
    const takes = limits !== null && html`<small class="words" lang="en">${limits}</small>`
    return html`<tr><td class="c1 wraps">${provider} ${takes}</td>
<td class="num c2">${record ? showCount(locale, record.answered) : texts.noRecord}</td>
<td class="num c4">${record ? `${showCount(locale, record.failed)}${share}` : none}</td>
<td class="wraps c3">${said ? renderChip(said, 'bad') : none}</td></tr>`
  }
  return renderTable(
    [texts.provider, { number: texts.answered }, { number: texts.failed }, texts.false],
    nodes.map(row),
    texts.nodesOf.replace('{network}', name),
  )
}

function percent({ tag }: Locale, { answered, failed }: NonNullable<NodeState['record']>): string {
  const format = new Intl.NumberFormat(tag, { style: 'percent', maximumFractionDigits: 2 })
  return format.format(failed / (answered + failed))
}

/** Beyond this many the exact number says nothing more, and counting takes long. */
export const countMax = 10_000
/** An operator should look at entries that wait longer. Webhooks and mails may wait for other servers. */
const lateMs = 60_000

type QueueId = keyof Texts['health']['queues']['names']
/** Queues that should be empty at any time. */
const troubles: readonly QueueId[] = ['failing', 'disabled']

/** The length of a queue over all stores. */
export type QueueRow = { readonly id: QueueId; readonly queue: Queue; readonly network: string }

export function renderQueues(page: Page, rows: readonly QueueRow[], operationsPort: number): Html {
  const texts = page.texts.health.queues
  const columns = [texts.what, { number: texts.waits }, { number: texts.oldest }, texts.hint]
  const command = `curl -s http://127.0.0.1:${operationsPort}/metrics | grep ^farthing_`
  return html`${renderHead(texts.title, { about: texts.about })}
${renderTable(
  columns,
  rows.map((row) => renderQueue(page, row)),
  texts.title,
)}
${renderCommand(page.texts, command)}`
}

function renderQueue({ texts: { health }, locale, now }: Page, { id, queue, network }: QueueRow): Html {
  const { queues: texts, none } = health
  const { count, oldestAt } = queue
  const waitedMs = oldestAt === null ? 0 : now.getTime() - oldestAt.getTime()
  const isLate = waitedMs > lateMs
  const shown = count >= countMax ? `${showCount(locale, countMax)}+` : showCount(locale, count)
  const oldest = oldestAt === null ? none : renderChip(showDuration(locale, waitedMs), isLate ? 'bad' : '')
  const hint = isLate || (count > 0 && troubles.includes(id)) ? texts.hints[id] : none
  return html`<tr><td class="c1">${fill(texts.names[id], { network })}</td><td class="num c2">${shown}</td>
<td class="num c4">${oldest}</td><td class="wraps soft c3">${hint}</td></tr>`
}

/** A finding of `doctor`. Without a fix it is fine. */
export type Finding = { readonly what: string; readonly says: string; readonly fix: string | null }

/** Without findings if it took too long. */
export type Examined = { readonly at: Date; readonly findings: readonly Finding[] | null }

export function renderDoctor(page: Page, examined: Examined | null): Html {
  const texts = page.texts.health.doctor
  const button = html`<button>${examined ? texts.again : texts.run}</button>`
  return html`${renderHead(texts.title, {
    about: html`<p class="soft words">${texts.about}</p>`,
    aside: html`<form action="/operator/doctor">${renderHidden('run', 'yes')}${button}</form>`,
  })}
${examined && renderExamined(page, examined)}
${renderCommand(page.texts, 'farthing-admin doctor')}`
}

function renderExamined({ texts: { health }, locale }: Page, { at, findings }: Examined): Html {
  const texts = health.doctor
  if (findings === null) return html`<section class="pane"><p class="note">${texts.tooLong}</p></section>`
  const wrong = findings.filter(({ fix }) => fix !== null)
  const fine = findings.filter(({ fix }) => fix === null)
  const summary =
    wrong.length === 0
      ? html`<p class="note good">${texts.well}</p>`
      : html`<p class="note">${fill(texts.wrong, { count: showCount(locale, wrong.length) })}</p>`
  const took = fill(texts.took, { time: showExactTime(locale, at) })
  const item = ({ what, says, fix }: Finding) =>
    html`<li><div><p><b>${what}</b> ${says}</p>${fix !== null && html`<small>${fix}</small>`}</div>
${fix === null ? renderChip(texts.fine, 'good') : renderChip(texts.bad, 'bad')}</li>`
  return html`<section class="pane stack">${summary}<p class="soft">${took} ${texts.elsewhere}</p>
<ul class="things" lang="en">${[...wrong, ...fine].map(item)}</ul></section>`
}
