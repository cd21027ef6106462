import { fill, type Html, html } from '../../page/html.ts'
import { showFours } from '../formats.ts'
import { textsOf } from '../texts/choose.ts'
import { amountOf } from './list.ts'
import { hiddenOf, type One, pathOf } from './screen.ts'

/** For a refund that the store pays by itself: naming the transaction, or its word that it paid another way. */
export function renderSent(one: One): Html {
  const texts = textsOf(one.request).refunds
  return html`${renderNaming(one)}
${
  one.isTheirs &&
  html`<details id="declare"><summary>${texts.declaring}</summary><form class="fields" method="post" action="${pathOf(one)}/declare" data-confirm="refund.declare">${hiddenOf(one)}<p class="soft">${texts.declaringAbout}</p>
<label>${texts.reference}<input name="reference" required maxlength="500" placeholder="${texts.referenceExample}" autocomplete="off"></label><div class="buttons"><button class="quiet">${texts.declare}</button></div></form></details>`
}`
}

export function renderNaming(one: One): Html {
  const { request, wire, reader } = one
  const texts = textsOf(request).refunds
  const [amount, wallet] = [html`<strong>${amountOf(reader, wire)}</strong>`, showFours(wire.from)]
  return html`<h2>${texts.naming}</h2><p class="words">${fill(texts.namingAbout, { amount })}</p>
<dl class="list tall"><div><dt>${texts.from}</dt><dd>${wallet}</dd></div><div><dt>${texts.recipient}</dt><dd>${wire.recipient !== null && showFours(wire.recipient)}</dd></div></dl>
<form class="fields" method="post" action="${pathOf(one)}/transaction">${hiddenOf(one)}<label>${texts.transaction}<input name="transaction" value="${wire.transaction ?? ''}" required maxlength="100" autocomplete="off" spellcheck="false" class="address"></label><div class="buttons"><button>${texts.name}</button></div></form>`
}
