import { mayAct } from '../../../members/rights.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { showExactTime, showFours } from '../formats.ts'
import { textsOf } from '../texts/choose.ts'
import { storeOf } from '../visitor.ts'
import { renderActs } from './acts.ts'
import { amountOf, renderChip } from './list.ts'
import type { One } from './screen.ts'
import { type Step, stepsOf } from './steps.ts'
import { renderTransaction } from './transaction.ts'
import { isYours, turnOf } from './turn.ts'

export function renderOne(one: One): Html {
  const { request, refund, wire, reader, problem } = one
  const texts = textsOf(request).refunds
  const base = `/stores/${storeOf(request).storeId}`
  const turn = turnOf(wire)
  const { title, text } = texts.next[turn]
  const isMine = mayAct(storeOf(request).role, 'refunds:write')
  const steps = stepsOf(refund, wire, reader)
  return html`<div class="head"><div><p class="soft"><a href="${base}/refunds">${texts.title}</a>${wire.orderId !== null && html` / <bdi>${wire.orderId}</bdi>`}</p>
<h1 class="price"><bdi>${amountOf(reader, wire)}</bdi> ${renderChip(texts, wire)}</h1><p>${describeOption(wire).name}</p></div>
<div class="next"><p><strong>${title}</strong> ${text}${isYours(turn) && !isMine && html` ${texts.mayNot}`}</p></div></div>
${problem !== null && html`<p class="note" role="alert">${problem}</p>`}
${isMine && renderActs(one)}
<div class="split"><section class="pane"><h2>${texts.happened}</h2><ol class="line">${steps.map((step) => renderStep(one, step))}</ol></section>
<section class="facts"><h2>${texts.facts}</h2>${renderFacts(one, base)}</section></div>`
}

function renderStep({ request, reader }: One, { id, at, tone, fills, by }: Step): Html {
  const texts = textsOf(request).refunds
  const { title, text } = texts.steps[id]
  return html`<li${tone !== '' && html` class="${tone}"`}><p class="row apart"><strong>${title}</strong>${at && showExactTime(reader, at)}</p>
<p class="soft">${fill(text, fills)}${by !== null && html` · ${fill(texts.by, { name: html`<bdi>${by}</bdi>` })}`}</p></li>
`
}

function renderFacts({ request, wire }: One, base: string): Html {
  const texts = textsOf(request).refunds
  const fact = (name: string, value: Html | string | null) =>
    value !== null && html`<div><dt>${name}</dt><dd>${value}</dd></div>`
  return html`<dl class="list tall">
${fact(texts.recipient, wire.recipient === null ? texts.toNobody : showFours(wire.recipient))}
${fact(texts.from, showFours(wire.from))}
${fact(texts.network, describeOption(wire).name)}
${fact(texts.transaction, wire.transaction === null ? null : renderTransaction(wire.network, wire.transaction))}
${fact(texts.reason, wire.reason === null ? null : html`<bdi>${wire.reason}</bdi>`)}
${fact(texts.declaredAs, wire.declared === undefined ? null : html`<bdi>${wire.declared}</bdi>`)}
${fact(texts.payment, html`<a href="${base}/payments/${wire.paymentId}"><code>${wire.paymentId}</code></a>`)}
${fact(texts.id, html`<code>${wire.id}</code>`)}
</dl>
<details id="raw"><summary>${texts.raw}</summary><pre tabindex="0"><code>${JSON.stringify(withoutCode(wire), null, 2)}</code></pre></details>`
}

/** Whoever confirms an address gets the code from the buyer, not from this screen. */
function withoutCode({ claim, ...wire }: One['wire']) {
  if (!claim) return wire
  const { code: _, ...shown } = claim
  return { ...wire, claim: shown }
}
