import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { type ChainState, type NodeState, openChainLook } from '../../../payments/look-at-chains.ts'
import type { Rails } from '../../../payments/rail.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { localeOf, showCount, showDuration, showExactTime } from '../formats.ts'
import { renderCommand, renderHead } from '../parts.ts'
import { textsOf } from '../texts/choose.ts'
import type { Deployment } from './deployment.ts'

/** How far each chain is read, and how the providers of its nodes do. */
export function mountChains(
  scope: FastifyInstance,
  ctx: Context,
  deployment: Deployment,
  rails: Rails,
): void {
  const look = openChainLook(deployment.ctx, rails)

  scope.get('/operator/chains', async (request, reply) => {
    const chains = await look()
    const texts = textsOf(request).health.chains
    return await sendPage(ctx, request, reply, {
      screen: 'chains',
      title: texts.title,
      main: html`${renderHead(texts.title, { about: texts.about })}
${chains.map((chain) => renderChain(request, chain))}
${renderCommand(textsOf(request), 'farthing-admin doctor')}`,
    })
  })
}

function renderChain(request: FastifyRequest, chain: ChainState): Html {
  const { network, obstacle, follower, nodes } = chain
  const texts = textsOf(request).health.chains
  const state =
    obstacle === null
      ? html`<span class="chip good">${texts.settles}</span>`
      : html`<span class="chip bad">${texts.settlesNot}</span>`
  return html`<section class="pane stack"><h2>${network.name} ${state}</h2>
${obstacle !== null && html`<p class="soft words" lang="en">${obstacle}</p>`}
${
  follower !== null &&
  follower.dispute !== null &&
  html`<p class="note">${fill(texts.dispute, { what: follower.dispute })}</p>`
}
${renderChainHead(request, follower)}
${
  nodes.length === 0 ? html`<p class="soft">${texts.noNodes}</p>` : renderNodes(request, network.name, nodes)
}</section>`
}

function renderChainHead(request: FastifyRequest, follower: ChainState['follower']): Html {
  const texts = textsOf(request).health.chains
  const locale = localeOf(request)
  if (!follower?.headTime || follower.headAgeSeconds === null) return html`<p class="soft">${texts.never}</p>`
  const { headNumber, headTime, headAgeSeconds, safeNumber, finalizedNumber } = follower
  const behind = (number: number) =>
    fill(texts.blocksBehind, { count: showCount(locale, Math.max(0, headNumber - number)) })
  return html`<dl class="list">
<div><dt>${texts.head}</dt><dd>${fill(texts.headAt, {
    number: showCount(locale, headNumber),
    age: showDuration(locale, headAgeSeconds * 1_000),
  })}</dd></div>
<div><dt>${texts.lag}</dt><dd>${showExactTime(locale, headTime)}</dd></div>
<div><dt>${texts.safe}</dt><dd>${behind(safeNumber)}</dd></div>
<div><dt>${texts.final}</dt><dd>${behind(finalizedNumber)}</dd></div>
</dl>`
}

function renderNodes(request: FastifyRequest, name: string, nodes: readonly NodeState[]): Html {
  const { chains: texts, none } = textsOf(request).health
  const locale = localeOf(request)
  const rows = nodes.map(({ provider, record, fault }) => {
    const share = record && record.failed > 0 ? ` (${percent(locale, record)})` : ''
    return html`<tr><td class="c1">${provider}</td>
<td class="num c2">${record ? showCount(locale, record.answered) : texts.noRecord}</td>
<td class="num c4">${record ? `${showCount(locale, record.failed)}${share}` : none}</td><td class="wraps c3">${
      fault
        ? html`<span class="chip bad">${fill(texts.falseTimes, { count: fault.faults, what: fault.fault })}</span>`
        : none
    }</td></tr>`
  })
  const label = texts.nodesOf.replace('{network}', name)
  return html`<div class="table" tabindex="0" role="region" aria-label="${label}"><table class="cards"><thead><tr>
<th scope="col">${texts.provider}</th><th scope="col" class="num">${texts.answered}</th>
<th scope="col" class="num">${texts.failed}</th><th scope="col">${texts.false}</th></tr></thead>
<tbody>${rows}</tbody></table></div>`
}

function percent(
  { tag }: ReturnType<typeof localeOf>,
  { answered, failed }: NonNullable<NodeState['record']>,
): string {
  const format = new Intl.NumberFormat(tag, { style: 'percent', maximumFractionDigits: 2 })
  return format.format(failed / (answered + failed))
}
