import type { WalletChanges } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import { Refusal } from '../../members/refusal.ts'
import { putAwayNews } from '../../members/silence.ts'
import { type Family, families } from '../../networks.ts'
import { listChanges, type WalletChange } from '../../stores/change.ts'
import { confirmChange, refuseChange } from '../../stores/confirm.ts'
import { listCurrent, listWallets, readStore } from '../../stores/rows.ts'
import { claimsByProof, networksFor, type Store, type Wallet } from '../../stores/store.ts'
import { undoChange } from '../../stores/undo.ts'
import { confirmSetting } from '../../stores/update.ts'
import { fill, type Html, html } from '../page/html.ts'
import { showMinute } from './formats.ts'
import { renderHead } from './parts.ts'
import { openScreen, type Screen } from './screen.ts'
import { describeChange, nameActor } from './wallet-news.ts'

const path = '/stores/:storeId/wallets'
const read = { config: { right: 'wallets:read' } } as const
const write = { config: { right: 'wallets:write' } } as const

/** The wallets that a store is paid to. Owners confirm, refuse and undo changes. */
export function mountWallets(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, read, async (request, reply) => {
    const screen = openScreen(ctx, request, reply)
    const { storeId } = screen
    const { storeName } = screen.store
    const { db } = screen.ctx
    const [store, current, changes, registered] = await Promise.all([
      readStore(db, storeId),
      listCurrent(db, storeId),
      listChanges(db, storeId),
      ctx.directory ? listWallets(db, storeId, { before: null, limit: registeredMax }) : [],
    ])
    if (!store) throw new Refusal('not_found')
    const texts = screen.texts.wallets
    const page: Page = { screen, store, mayChange: screen.may('wallets:write') }
    const offered = networksFor(ctx, store.mode).map(({ family }) => family)
    const shown = families.filter((family) =>
      [...offered, ...current.map((each) => each.family)].includes(family),
    )
    const unclaimed = registered.filter(({ isUnclaimed }) => isUnclaimed)
    const waiting = changes.filter(({ isWaiting }) => isWaiting)
    const made = changes.filter(({ madeAt }) => madeAt !== null)
    return screen.send({
      screen: 'wallets',
      title: texts.title.replace('{store}', storeName),
      main: html`${renderHead(fill(texts.title, { store: storeName }))}
<section class="pane">
${
  waiting.length > 0 &&
  html`<h2>${texts.waiting}</h2>
<ul class="things">${waiting.map((each) => renderWaiting(page, each))}</ul>`
}
${
  unclaimed.length > 0 &&
  html`<h2>${texts.unclaimed}</h2>
<ul class="things">${unclaimed.map((each) => renderUnclaimed(page, each))}</ul>`
}
<h2>${texts.inUse}</h2>
<ul class="things">${shown.map((family) =>
        renderCurrent(
          page,
          family,
          current.find((each) => each.family === family),
        ),
      )}</ul>
${made.length > 0 && renderMade(page, made)}
<h2>${texts.who}</h2>
${renderSetting(page)}
</section>`,
    })
  })

  scope.post(`${path}/confirm`, write, async (request, reply) => {
    const { ctx: mine, storeId, touch, field, go } = openScreen(ctx, request, reply)
    await confirmChange(mine, storeId, await touch(), field('changeId'), ctx.now())
    return go('/wallets')
  })

  scope.post(`${path}/refuse`, write, async (request, reply) => {
    const { ctx: mine, storeId, session, field, go } = openScreen(ctx, request, reply)
    await refuseChange(mine, storeId, session.member, field('changeId'), ctx.now())
    return go('/wallets')
  })

  scope.post(`${path}/undo`, write, async (request, reply) => {
    const { ctx: mine, storeId, touch, field, go } = openScreen(ctx, request, reply)
    const cancelsOpen = field('cancelsOpen') === 'yes'
    await undoChange(mine, storeId, await touch(), { changeId: field('changeId'), cancelsOpen }, ctx.now())
    return go('/wallets')
  })

  scope.post(`${path}/setting`, write, async (request, reply) => {
    const { ctx: mine, storeId, touch, field, go } = openScreen(ctx, request, reply)
    const walletChanges = field('walletChanges')
    if (!isChoice(walletChanges)) throw new Refusal('invalid')
    await confirmSetting(mine, storeId, await touch(), walletChanges, ctx.now())
    return go('/wallets')
  })

  scope.post(`${path}/seen`, read, async (request, reply) => {
    const { storeId, touch, field, go } = openScreen(ctx, request, reply)
    await putAwayNews(ctx, storeId, await touch(), field('until'), ctx.now())
    return go('/wallets')
  })
}

type Page = { readonly screen: Screen; readonly store: Store; readonly mayChange: boolean }

/** The newest wallets, of which those that wait for a signature are shown. */
const registeredMax = 50

const choices: readonly WalletChanges[] = ['member', 'key']

function isChoice(text: string): text is WalletChanges {
  return (choices as readonly string[]).includes(text)
}

/** What people call the networks of a family that this deployment offers. */
function nameFamily({ screen, store }: Page, family: Family): string {
  const offered = networksFor(screen.ctx, store.mode).filter((network) => network.family === family)
  return offered.map(({ name }) => name).join(', ') || family
}

function show(address: string): Html {
  return html`<bdi class="address">${address}</bdi>`
}

function renderCurrent(page: Page, family: Family, wallet: Wallet | undefined): Html {
  const network = nameFamily(page, family)
  const { wallets: texts } = page.screen.texts
  if (!wallet) return html`<li><p>${network}<small>${texts.none}</small></p></li>`
  const { address, provenAt, isElsewhere } = wallet
  if (isElsewhere) return html`<li><p>${network} ${show(address)}<small>${texts.elsewhere}</small></p></li>`
  return html`<li><p>${network} ${show(address)}<small>${
    provenAt ? fill(texts.proven, { time: showMinute(page.screen.locale, provenAt) }) : texts.unproven
  }</small></p></li>`
}

/** A wallet that this cell may not use yet. */
function renderUnclaimed(page: Page, wallet: Wallet): Html {
  const { wallets: texts } = page.screen.texts
  const proven = html`<a href="${page.screen.ctx.config.baseUrl}/docs/build#wallets">${texts.unclaimedProven}</a>`
  return html`<li><p>${nameFamily(page, wallet.family)} ${show(wallet.address)}<small>${
    claimsByProof(wallet) ? fill(texts.unclaimedAbout, { proven }) : texts.unclaimedCustodial
  }</small></p></li>`
}

function renderWaiting(page: Page, change: WalletChange): Html {
  const { id, storeId, family, kind, wallet, actor, askedAt, expiresAt } = change
  const { wallets: texts } = page.screen.texts
  const fields = html`${page.screen.storeFields}<input type="hidden" name="changeId" value="${id}">`
  const asked = fill(expiresAt ? texts.askedByUntil : texts.askedBy, {
    who: nameActor(actor, page.screen.texts),
    time: showMinute(page.screen.locale, askedAt),
    until: expiresAt ? showMinute(page.screen.locale, expiresAt) : '',
  })
  const wish = fill(kind === 'use' ? texts.askUse : texts.askRetire, {
    network: nameFamily(page, family),
    address: show(wallet.address),
  })
  return html`<li><p>${wish}<small>${asked} ${!wallet.isProven && html`${texts.unproven}. `}${
    kind === 'use' ? texts.compare : texts.staysInUse
  }</small></p>${
    page.mayChange &&
    html`<form method="post" action="/stores/${storeId}/wallets/confirm" data-confirm="wallet.confirm">${fields}
<input type="hidden" name="kind" value="${kind}"><input type="hidden" name="address" value="${wallet.address}">
<button>${texts.confirm}</button></form>
<form method="post" action="/stores/${storeId}/wallets/refuse">${fields}
<button class="quiet">${texts.refuse}</button></form>`
  }</li>`
}

function renderMade(page: Page, made: readonly WalletChange[]): Html {
  const { wallets: texts } = page.screen.texts
  const revoke = html`<a href="${page.screen.ctx.config.baseUrl}/docs/owner#if-a-key-is-stolen">${texts.revoke}</a>`
  return html`<h2>${texts.recent}</h2>
<p class="soft">${texts.recentAbout}</p>
${page.store.walletChanges === 'key' && html`<p class="note">${fill(texts.keyEnough, { revoke })}</p>`}
<ul class="things">${made.map((each) => renderChange(page, each))}</ul>`
}

function renderChange(page: Page, change: WalletChange): Html {
  const { id, storeId, family, previous, madeAt, isUndoable, undoneAt } = change
  const { locale, storeFields: form } = page.screen
  const { wallets: texts } = page.screen.texts
  const button = previous
    ? html`<button>${fill(texts.goBack, { address: shorten(previous.address) })}</button>`
    : html`<button class="quiet">${texts.stopUsing}</button>`
  return html`<li><p>${nameFamily(page, family)}: ${describeChange(change, page.screen.texts)}<small>${
    madeAt && showMinute(locale, madeAt)
  }${
    undoneAt && html`, ${fill(texts.undone, { time: showMinute(locale, undoneAt) })}`
  }${previous && !undoneAt && html`. ${fill(texts.before, { address: show(previous.address) })}`}</small></p>${
    page.mayChange &&
    isUndoable &&
    html`<form method="post" action="/stores/${storeId}/wallets/undo" data-confirm="wallet.undo" class="undo">${form}
<input type="hidden" name="changeId" value="${id}">
<input type="hidden" name="address" value="${previous?.address ?? ''}">
<label class="check"><input type="checkbox" name="cancelsOpen" value="yes" checked>${
      previous ? texts.cancelOther : texts.cancelIt
    }</label>
${button}</form>`
  }</li>`
}

function shorten(address: string): string {
  return `${address.slice(0, 6)}…${address.slice(-4)}`
}

function renderSetting({ screen, store: { id, walletChanges }, mayChange }: Page): Html {
  const { wallets: texts } = screen.texts
  if (!mayChange) return html`<p>${texts.choices[walletChanges]}.</p>`
  return html`<form method="post" action="/stores/${
    id
  }/wallets/setting" data-confirm="wallet.setting" class="fields">${screen.storeFields}
<label>${texts.whoLabel}<select name="walletChanges">${choices.map(
    (choice) =>
      html`<option value="${choice}"${choice === walletChanges ? html` selected` : null}>${
        texts.choices[choice]
      }</option>`,
  )}</select></label>
<div><button class="quiet">${texts.save}</button></div>
</form>`
}
