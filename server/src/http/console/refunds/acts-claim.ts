import type { RefundClaimLink } from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import { fill, type Html, html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { showExactTime, showFours } from '../formats.ts'
import { textsOf } from '../texts/choose.ts'
import { hiddenOf, type One, pathOf } from './screen.ts'

/** For a refund of which nobody knows yet who gets it: the buyer's link, and confirming what the buyer named. */
export function renderClaim(one: One): Html {
  const { request, wire, reader } = one
  const texts = textsOf(request).refunds
  const { claim } = wire
  const isOpen = claim?.status === 'OPEN'
  const makeLink = html`<form method="post" action="${pathOf(one)}/claim">${hiddenOf(one)}<button${claim !== undefined && html` class="quiet"`}>${claim === undefined ? texts.makeLink : texts.newLink}</button></form>`
  if (claim?.status !== 'NAMED')
    return html`${isOpen && html`<p>${fill(texts.linkUntil, { time: showExactTime(reader, new Date(claim.expiresAt)) })}</p>`}${makeLink}`
  const address = claim.address ?? ''
  if (!one.isTheirs)
    return html`<div><p class="soft">${texts.named}</p>${showFours(address)}</div><p>${texts.notTheirs}</p>`
  return html`<form class="fields" method="post" action="${pathOf(one)}/confirm" data-confirm="refund.confirm">${hiddenOf(one)}<input type="hidden" name="address" value="${address}">
<div><p class="soft">${texts.named}</p>${showFours(address)}</div>
<label>${texts.code}<input name="code" required maxlength="20" autocomplete="off" spellcheck="false"><small>${texts.codeAbout}</small></label>
<div class="buttons"><button>${texts.confirm}</button></div></form>
<details id="another-link"><summary>${texts.newLink}</summary>${makeLink}</details>`
}

/** In the answer itself and in no URL: the link is a secret, and it is shown once. */
export function sendLink(
  one: One,
  reply: FastifyReply,
  { url, expiresAt }: RefundClaimLink,
): Promise<FastifyReply> {
  const { ctx, request, reader } = one
  const texts = textsOf(request).refunds
  const until = fill(texts.linkUntil, { time: showExactTime(reader, new Date(expiresAt)) })
  return sendPage(ctx, request, reply, {
    title: texts.linkMade,
    isAlone: true,
    main: html`<h1>${texts.linkMade}</h1><p>${texts.linkAbout} ${until}</p>
<code class="link" tabindex="0">${url}</code>
<form><button type="button" data-copy="${url}" data-done="${textsOf(request).frame.copied}">${texts.copyLink}</button></form>
<p><a href="${pathOf(one)}">${texts.back}</a></p>`,
  })
}
