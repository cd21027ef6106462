import type { WalletChanges } from '@farthing/sdk'
import { type Family, families } from '../../../networks.ts'
import type { WalletChange } from '../../../stores/change.ts'
import { needsProof, type Store, type Wallet } from '../../../stores/store.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showFours, showMinute } from '../formats.ts'
import { renderChooser, renderHead, renderHidden } from '../parts.ts'
import type { Screen } from '../screen.ts'
import { renderUseAgain } from './enter.ts'
import { describeChange, nameActor } from './news.ts'
import { describeState, familiesOf, nameFamily, renderBig, renderState } from './parts.ts'

/** Who may change the wallet. */
export const choices: readonly WalletChanges[] = ['member', 'key']

export type Wallets = {
  readonly store: Store
  /** Those that new checkouts are paid to, one of each family. */
  readonly current: readonly Wallet[]
  readonly changes: readonly WalletChange[]
  /** Those that were in use before. */
  readonly former: readonly Wallet[]
  readonly registered: readonly Wallet[]
}

export function renderWallets(screen: Screen, wallets: Wallets): Html {
  const { store, current, changes, former, registered } = wallets
  const texts = screen.texts.wallets
  const inUse = new Map(current.map((each) => [each.family, each]))
  const shown = families.filter((family) => familiesOf(screen).includes(family) || inUse.has(family))
  const unowned = registered.filter(({ isUnowned }) => isUnowned)
  const waiting = changes.filter(({ isWaiting }) => isWaiting)
  const made = changes.filter(({ madeAt }) => madeAt !== null)
  const isEmpty = current.length === 0 && unowned.length === 0
  const list = (title: string, items: readonly Html[]) =>
    items.length > 0 &&
    html`<h2>${title}</h2>
<ul class="things">${items}</ul>`
  const used = shown.map((family) => renderCurrent(screen, family, inUse.get(family)))
  return html`${renderHead(fill(texts.title, { store: screen.store.storeName }), { about: texts.about })}
<section class="pane">
${list(
  texts.waiting,
  waiting.map((each) => renderWaiting(screen, each)),
)}
${list(
  texts.unowned,
  unowned.map((each) => renderUnowned(screen, each)),
)}
${isEmpty ? renderNone(screen) : list(texts.inUse, used)}
${made.length > 0 && renderMade(screen, store, made)}
${list(
  texts.former,
  former.map((each) => renderFormer(screen, each)),
)}
<h2>${texts.who}</h2>
${renderSetting(screen, store)}
</section>`
}

function renderNone(screen: Screen): Html {
  const { base, may } = screen
  const { empty, emptyAbout, add } = screen.texts.wallets
  const networks = familiesOf(screen)
    .map((family) => nameFamily(screen, family))
    .join(', ')
  const act = may('wallets:write')
    ? html`<p><a class="button" href="${base}/wallets/new">${add}</a></p>`
    : html`<p>${screen.texts.newPayment.askOwner}</p>`
  return html`<div class="empty"><h2>${empty}</h2><p class="words">${fill(emptyAbout, { networks })}</p>${act}</div>`
}

function show(address: string): Html {
  return html`<bdi class="address">${address}</bdi>`
}

/** A wallet with what is known of it, and what its owner can do about it. */
function renderThing(screen: Screen, wallet: Wallet, acts: Html | null, more: Html | null = null): Html {
  const { base } = screen
  const { id, family, address } = wallet
  const about = describeState(screen, wallet).map((each) => html`<small>${each}</small>`)
  const name = html`<a href="${base}/wallets/${id}"><b>${nameFamily(screen, family)}</b></a>`
  return html`<li><div><p>${name} ${renderState(screen, wallet)}</p>
${showFours(address)}${about}${more}</div>${acts && html`<div class="acts">${acts}</div>`}</li>`
}

function renderCurrent(screen: Screen, family: Family, wallet: Wallet | undefined): Html {
  const { base, may } = screen
  const texts = screen.texts.wallets
  if (!wallet) {
    const add =
      may('wallets:write') &&
      html`<div class="acts"><a class="button quiet" href="${base}/wallets/new">${texts.add}</a></div>`
    return html`<li><div><p><b>${nameFamily(screen, family)}</b></p><small>${texts.none}</small></div>${add}</li>`
  }
  if (!may('wallets:write')) return renderThing(screen, wallet, null)
  const own = `${base}/wallets/${wallet.id}`
  const prove =
    wallet.provenAt === null &&
    wallet.custodialType === 'NON_CUSTODIAL' &&
    html`<a class="button" href="${own}">${texts.prove}</a>`
  const acts = html`${prove}<a class="button quiet" href="${base}/wallets/new">${texts.change}</a>
<a class="button quiet" href="${own}/stop">${texts.stopUsing}</a>`
  return renderThing(screen, wallet, acts)
}

/** A wallet that this cell may not use yet. */
function renderUnowned(screen: Screen, wallet: Wallet): Html {
  const { base, may } = screen
  const prove =
    needsProof(wallet) &&
    may('wallets:write') &&
    html`<a class="button" href="${base}/wallets/${wallet.id}">${screen.texts.wallets.prove}</a>`
  return renderThing(screen, wallet, prove || null)
}

function renderFormer(screen: Screen, wallet: Wallet): Html {
  const { base, locale, may } = screen
  const { until, replaced } = screen.texts.wallets
  const { retiredAt } = wallet
  const ended = retiredAt ? fill(until, { time: showMinute(locale, retiredAt) }) : html`${replaced}`
  const isUnproven = wallet.provenAt === null && wallet.custodialType === 'NON_CUSTODIAL'
  const prove =
    isUnproven &&
    html`<a class="button quiet" href="${base}/wallets/${wallet.id}">${screen.texts.wallets.prove}</a>`
  const acts = may('wallets:write') ? html`${prove}${renderUseAgain(screen, wallet)}` : null
  return renderThing(screen, wallet, acts, html`<small>${ended}</small>`)
}

function renderWaiting(screen: Screen, change: WalletChange): Html {
  const { id, family, kind, wallet, actor, askedAt, expiresAt } = change
  const { base, locale } = screen
  const texts = screen.texts.wallets
  const fields = html`${screen.formFields}${renderHidden('changeId', id)}`
  const asked = fill(expiresAt ? texts.askedByUntil : texts.askedBy, {
    who: nameActor(actor, screen.texts),
    time: showMinute(locale, askedAt),
    until: expiresAt ? showMinute(locale, expiresAt) : '',
  })
  const wish = fill(kind === 'use' ? texts.askUse : texts.askRetire, { network: nameFamily(screen, family) })
  const unproven = !wallet.isProven && html`${texts.stateAbout.unproven} `
  const advice = kind === 'use' ? texts.compare : texts.staysInUse
  const forms = html`<form method="post" action="${base}/wallets/confirm" data-confirm="wallet.confirm">${fields}
${renderHidden('kind', kind)}${renderHidden('address', wallet.address)}
<button>${texts.confirm}</button></form>
<form method="post" action="${base}/wallets/refuse">${fields}
<button class="quiet">${texts.refuse}</button></form>`
  return html`<li><div>${renderBig(wish, wallet.address)}<small>${asked} ${unproven}${advice}</small></div>${
    screen.may('wallets:write') && html`<div class="acts">${forms}</div>`
  }</li>`
}

function renderMade(screen: Screen, store: Store, made: readonly WalletChange[]): Html {
  const texts = screen.texts.wallets
  const isByKey = store.walletChanges === 'key' && made.some(({ actor }) => actor.type === 'key')
  const docs = `${screen.ctx.config.baseUrl}/docs/owner#if-a-key-is-stolen`
  const revoke = html`<a href="${docs}">${texts.revoke}</a>`
  return html`<h2>${texts.recent}</h2>
<p class="soft">${texts.recentAbout}</p>
${isByKey && html`<p class="note">${fill(texts.keyEnough, { revoke })}</p>`}
<ul class="things">${made.map((each) => renderChange(screen, each))}</ul>`
}

function renderChange(screen: Screen, change: WalletChange): Html {
  const { family, previous, madeAt, undoneAt } = change
  const { locale } = screen
  const texts = screen.texts.wallets
  const undone = undoneAt && html`, ${fill(texts.undone, { time: showMinute(locale, undoneAt) })}`
  const before = previous && !undoneAt && html`. ${fill(texts.before, { address: show(previous.address) })}`
  const what = html`${nameFamily(screen, family)}: ${describeChange(change, screen.texts)}`
  return html`<li><p>${what}<small>${madeAt && showMinute(locale, madeAt)}${undone}${before}</small></p>${
    screen.may('wallets:write') && change.isUndoable && renderUndo(screen, change)
  }</li>`
}

function renderUndo({ base, texts: { wallets: texts } }: Screen, { id, previous }: WalletChange): Html {
  const text = previous
    ? fill(texts.goBack, { address: shorten(previous.address) })
    : html`${texts.goBackToNone}`
  const kind = html`button${!previous && ' quiet'}`
  return html`<div class="acts"><a class="${kind}" href="${base}/wallets/undo/${id}">${text}</a></div>`
}

function shorten(address: string): string {
  return `${address.slice(0, 6)}…${address.slice(-4)}`
}

function renderSetting(screen: Screen, { walletChanges }: Store): Html {
  const { base, formFields } = screen
  const texts = screen.texts.wallets
  if (!screen.may('wallets:write')) return html`<p>${texts.choices[walletChanges]}.</p>`
  const options = choices.map((each) => [each, texts.choices[each]] as const)
  const action = `${base}/wallets/setting`
  return html`<form method="post" action="${action}" data-confirm="wallet.setting" class="fields">${formFields}
${renderChooser(texts.whoLabel, 'walletChanges', walletChanges, options)}
<div><button class="quiet">${texts.save}</button></div>
</form>`
}
