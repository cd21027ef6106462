import type { StoreStanding } from '@farthing/sdk'
import type { Wallet } from '../../../../stores/store.ts'
import { type Html, html, lines } from '../../../page/html.ts'
import { showFours, showMinute } from '../../formats.ts'
import {
  renderAlert,
  renderApiLine,
  renderCopied,
  renderFact,
  renderField,
  renderHead,
  renderHidden,
} from '../../parts.ts'
import type { Screen } from '../../screen.ts'
import { renderUp } from '../enter.ts'
import {
  describeState,
  nameFamily,
  networkForWallets,
  renderAsking,
  renderBig,
  renderFollowing,
  renderState,
} from '../parts.ts'

/** As long as the longest signature that is read: 4,096 bytes in hexadecimal. */
const signatureMax = 8_200

export function renderWallet(screen: Screen, wallet: Wallet, standing: StoreStanding): Html {
  const { may, base } = screen
  const texts = screen.texts.wallets
  const { id, family, isCurrent } = wallet
  const needsProof = wallet.provenAt === null && may('wallets:write')
  const stop =
    isCurrent &&
    may('wallets:write') &&
    html`<a class="button quiet" href="${base}/wallets/${id}/stop">${texts.stopUsing}</a>`
  const facts = html`<dl class="list tall">
${renderFact(texts.one.address, showFours(wallet.address))}
${renderFact(texts.one.added, showMinute(screen.locale, wallet.createdAt))}
${renderFact(texts.one.proof, wallet.provenAt ? showMinute(screen.locale, wallet.provenAt) : texts.states.unproven)}
${renderFact(texts.one.keys, texts.enter.kinds[wallet.custodialType].title)}
${renderFact(texts.one.id, html`<code>${id}</code>`)}</dl>`
  return html`${renderHead(html`${nameFamily(screen, family)} ${renderState(screen, wallet)}`, {
    above: renderUp(screen),
    about: html`${describeState(screen, wallet).map((each) => html`<p class="soft words">${each}</p>`)}`,
    aside: html`<div class="row">${stop}</div>`,
  })}
<div class="split"><section class="pane stack">${
    needsProof ? renderProof(screen, wallet, standing) : renderBig(texts.one.address, wallet.address)
  }</section>
<section class="facts">${facts}</section></div>
${renderApiLine(screen, { method: 'POST', path: `/stores/${screen.storeId}/wallets/${id}/challenge` })}`
}

function renderProof(screen: Screen, wallet: Wallet, standing: StoreStanding): Html {
  const { base, formFields } = screen
  const texts = screen.texts.wallets.one
  const { id, family, address, custodialType } = wallet
  const own = `${base}/wallets/${id}`
  const values = {
    ...{ challenge: `${own}/challenge`, present: `${own}/prove`, from: address },
    network: JSON.stringify(networkForWallets(screen, family)),
    ...{ label: texts.signWith, unnamed: texts.unnamed, ...texts.troubles },
  }
  const isOpened = standing === 'unproven' || standing === 'waiting'
  const isCustodial = custodialType === 'CUSTODIAL'
  return html`<h2>${isCustodial ? texts.proveAnyway : texts.prove}</h2>
<p class="words">${isCustodial ? texts.proveAnywayAbout : texts.proveAbout} ${isOpened && texts.opens}</p>
${renderBig(texts.signsAs, address)}
${renderAsking('proof', [family], values, { asking: texts.asking, none: texts.none })}
<noscript><p class="note">${texts.needsScript}</p></noscript>
<details id="elsewhere"><summary>${texts.elsewhere}</summary>
<form class="stack" method="post" action="${own}/message">${formFields}
<p class="soft words">${texts.elsewhereAbout}</p>
<div class="buttons"><button class="quiet">${texts.getMessage}</button></div></form></details>
${!isCustodial && wallet.retiredAt === null && renderCustody(screen, wallet, isOpened)}`
}

/** For a wallet that cannot sign: what that costs, before the touch. */
function renderCustody(
  { base, formFields, texts: { wallets } }: Screen,
  wallet: Wallet,
  isOpened: boolean,
): Html {
  const texts = wallets.one
  const costs = [texts.costs.refunds, texts.costs.money, texts.costs.address]
  const list = [...costs, ...(isOpened ? [texts.costs.waits] : [])]
  return html`<details id="custody"><summary>${texts.custody}</summary>
<form class="stack" method="post" action="${base}/wallets/custody" data-confirm="wallet.custody">${formFields}
${renderHidden('walletId', wallet.id)}${renderHidden('address', wallet.address)}
<p class="words">${texts.custodyAbout}</p>
<ul class="bullets words">${list.map((each) => html`<li>${each}</li>`)}</ul>
<div class="buttons"><button class="quiet">${texts.declare}</button></div></form></details>`
}

/** For a wallet on another device, or several people's. */
export function renderMessage(screen: Screen, wallet: Wallet, message: string, problem: string | null): Html {
  const { base, formFields } = screen
  const texts = screen.texts.wallets.one
  const own = `${base}/wallets/${wallet.id}`
  const signature = {
    ...{ required: true, maxlength: signatureMax, autocomplete: 'off', spellcheck: 'false' },
    ...{ class: 'address', dir: 'ltr' },
  }
  return html`${renderHead(texts.elsewhere, {
    above: html`<p class="soft"><a href="${own}">${nameFamily(screen, wallet.family)}</a></p>`,
    about: html`<p class="soft words">${texts.messageAbout}</p>`,
  })}
<section class="pane stack">${renderAlert(problem)}
${renderBig(texts.signsAs, wallet.address)}
${renderCopied(screen.texts, message)}
<form class="fields" method="post" action="${own}/signature">${formFields}
<input type="hidden" name="message" value="${lines(message)}">
${renderField(texts.signature, 'signature', signature, texts.signatureAbout)}
<div class="buttons"><button>${texts.check}</button>
<a class="button quiet" href="${own}">${screen.texts.wallets.enter.back}</a></div></form></section>`
}

/** What follows when a wallet is taken out of use, before the touch. */
export function renderStop(screen: Screen, wallet: Wallet, next: Wallet | null): Html {
  const { base, formFields } = screen
  const { stop: texts, enter } = screen.texts.wallets
  const network = nameFamily(screen, wallet.family)
  const { follows } = texts
  const steps = [next ? follows.next : follows.none, enter.follows.open, follows.undo, enter.follows.refunds]
  const then = next
    ? renderBig(enter.paidThen, next.address)
    : html`<div class="big"><p class="label">${enter.paidThen}</p><p>${enter.nobody}</p></div>`
  return html`${renderHead(texts.title, { above: renderUp(screen), about: network })}
<div class="split"><section class="pane stack">
<dl class="list tall">${renderFact(enter.paidNow, showFours(wallet.address))}</dl>${then}
<form class="buttons" method="post" action="${base}/wallets/stop" data-confirm="wallet.stop">${formFields}
${renderHidden('walletId', wallet.id)}${renderHidden('address', wallet.address)}
${renderHidden('paidNext', next?.address ?? '')}
<button>${texts.confirm}</button><a class="button quiet" href="${base}/wallets">${enter.keep}</a></form>
<p class="soft">${texts.bound}</p></section>
<section class="facts">${renderFollowing(enter.followsTitle, steps, { network })}</section></div>`
}
