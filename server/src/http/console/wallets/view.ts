import type { WalletChanges } from '@farthing/sdk'
import { type Family, families } from '../../../networks.ts'
import type { WalletChange } from '../../../stores/change.ts'
import { needsProof, networksFor, type Store, type Wallet } from '../../../stores/store.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showMinute } from '../formats.ts'
import { renderCheck, renderChooser, renderHead, renderHidden } from '../parts.ts'
import type { Screen } from '../screen.ts'
import { describeChange, nameActor } from './news.ts'

/** Who may change the wallet. */
export const choices: readonly WalletChanges[] = ['member', 'key']

export type Wallets = {
  readonly store: Store
  /** Those that new checkouts are paid to, one of each family. */
  readonly current: readonly Wallet[]
  readonly changes: readonly WalletChange[]
  readonly registered: readonly Wallet[]
}

export function renderWallets(screen: Screen, { store, current, changes, registered }: Wallets): Html {
  const texts = screen.texts.wallets
  const inUse = new Map(current.map((each) => [each.family, each]))
  const offered = networksFor(screen.ctx, store.mode).map(({ family }) => family)
  const shown = families.filter((family) => offered.includes(family) || inUse.has(family))
  const unowned = registered.filter(({ isUnowned }) => isUnowned)
  const waiting = changes.filter(({ isWaiting }) => isWaiting)
  const made = changes.filter(({ madeAt }) => madeAt !== null)
  const list = (title: string, items: readonly Html[]) =>
    html`<h2>${title}</h2>
<ul class="things">${items}</ul>`
  const wait = waiting.map((each) => renderWaiting(screen, each))
  const unused = unowned.map((each) => renderUnowned(screen, each))
  const used = shown.map((family) => renderCurrent(screen, family, inUse.get(family)))
  return html`${renderHead(fill(texts.title, { store: screen.store.storeName }))}
<section class="pane">
${wait.length > 0 && list(texts.waiting, wait)}
${unused.length > 0 && list(texts.unowned, unused)}
${list(texts.inUse, used)}
${made.length > 0 && renderMade(screen, store, made)}
<h2>${texts.who}</h2>
${renderSetting(screen, store)}
</section>`
}

/** What people call the networks of a family that this deployment offers. */
function nameFamily({ ctx, store }: Screen, family: Family): string {
  const offered = networksFor(ctx, store.mode).filter((network) => network.family === family)
  return offered.map(({ name }) => name).join(', ') || family
}

function show(address: string): Html {
  return html`<bdi class="address">${address}</bdi>`
}

function renderCurrent(screen: Screen, family: Family, wallet: Wallet | undefined): Html {
  const network = nameFamily(screen, family)
  const texts = screen.texts.wallets
  if (!wallet) return html`<li><p>${network}<small>${texts.none}</small></p></li>`
  const { address, provenAt, isElsewhere } = wallet
  const proven = provenAt && fill(texts.proven, { time: showMinute(screen.locale, provenAt) })
  const state = isElsewhere ? texts.elsewhere : (proven ?? texts.unproven)
  return html`<li><p>${network} ${show(address)}<small>${state}</small></p></li>`
}

/** A wallet that this cell may not use yet. */
function renderUnowned(screen: Screen, wallet: Wallet): Html {
  const texts = screen.texts.wallets
  const docs = `${screen.ctx.config.baseUrl}/docs/build#wallets`
  const proven = html`<a href="${docs}">${texts.unownedProven}</a>`
  const about = needsProof(wallet) ? fill(texts.unownedAbout, { proven }) : texts.unownedCustodial
  return html`<li><p>${nameFamily(screen, wallet.family)} ${show(wallet.address)}<small>${about}</small></p></li>`
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
  const wish = fill(kind === 'use' ? texts.askUse : texts.askRetire, {
    network: nameFamily(screen, family),
    address: show(wallet.address),
  })
  const unproven = !wallet.isProven && html`${texts.unproven}. `
  const advice = kind === 'use' ? texts.compare : texts.staysInUse
  const forms = html`<form method="post" action="${base}/wallets/confirm" data-confirm="wallet.confirm">${fields}
${renderHidden('kind', kind)}${renderHidden('address', wallet.address)}
<button>${texts.confirm}</button></form>
<form method="post" action="${base}/wallets/refuse">${fields}
<button class="quiet">${texts.refuse}</button></form>`
  return html`<li><p>${wish}<small>${asked} ${unproven}${advice}</small></p>${
    screen.may('wallets:write') && forms
  }</li>`
}

function renderMade(screen: Screen, store: Store, made: readonly WalletChange[]): Html {
  const texts = screen.texts.wallets
  const docs = `${screen.ctx.config.baseUrl}/docs/owner#if-a-key-is-stolen`
  const revoke = html`<a href="${docs}">${texts.revoke}</a>`
  return html`<h2>${texts.recent}</h2>
<p class="soft">${texts.recentAbout}</p>
${store.walletChanges === 'key' && html`<p class="note">${fill(texts.keyEnough, { revoke })}</p>`}
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

function renderUndo({ base, formFields, texts: { wallets: texts } }: Screen, change: WalletChange): Html {
  const { id, previous } = change
  const button = previous
    ? html`<button>${fill(texts.goBack, { address: shorten(previous.address) })}</button>`
    : html`<button class="quiet">${texts.stopUsing}</button>`
  const action = `${base}/wallets/undo`
  return html`<form method="post" action="${action}" data-confirm="wallet.undo" class="undo">${formFields}
${renderHidden('changeId', id)}
${renderHidden('address', previous?.address ?? '')}
${renderCheck('cancelsOpen', previous ? texts.cancelOther : texts.cancelIt, true)}
${button}</form>`
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
