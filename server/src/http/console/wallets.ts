import type { WalletChanges } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import { readTouch } from '../../members/confirm.ts'
import { Refusal } from '../../members/refusal.ts'
import { mayAct } from '../../members/rights.ts'
import { putAwayNews } from '../../members/silence.ts'
import { type Family, families } from '../../networks.ts'
import { listChanges, type WalletChange } from '../../stores/change-rows.ts'
import { confirmChange, confirmSetting, refuseChange } from '../../stores/confirm.ts'
import { listCurrent, listWallets, readStore } from '../../stores/rows.ts'
import { claimsByProof, networksFor, type Store, type Wallet } from '../../stores/store.ts'
import { undoChange } from '../../stores/undo.ts'
import { fill, type Html, html } from '../page/html.ts'
import { sendPage } from './document.ts'
import { fieldsOf, textOf, touchOf } from './fields.ts'
import { formField } from './form-field.ts'
import { type Language, languageOf } from './texts/choose.ts'
import { forStore, giveFormToken, sessionOf, storeOf } from './visitor.ts'
import { describeChange, nameActor } from './wallet-news.ts'
import { when } from './when.ts'

const path = '/stores/:storeId/wallets'
const read = { config: { right: 'wallets:read' } } as const
const write = { config: { right: 'wallets:write' } } as const

/** The wallets that a store is paid to. Owners confirm, refuse and undo changes. */
export function mountWallets(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, read, async (request, reply) => {
    const { storeId, storeName, role } = storeOf(request)
    const { db } = forStore(ctx, storeId)
    const [store, current, changes, registered] = await Promise.all([
      readStore(db, storeId),
      listCurrent(db, storeId),
      listChanges(db, storeId),
      ctx.directory ? listWallets(db, storeId, { before: null, limit: registeredMax }) : [],
    ])
    if (!store) throw new Refusal('not_found')
    const form = html`${formField(giveFormToken(ctx, request, reply))}<input type="hidden" name="storeId" value="${storeId}">`
    const language = languageOf(request)
    const { wallets: texts } = language.texts
    const page: Page = { ctx, store, form, language, mayChange: mayAct(role, 'wallets:write') }
    const offered = networksFor(ctx, store.mode).map(({ family }) => family)
    const shown = families.filter((family) =>
      [...offered, ...current.map((each) => each.family)].includes(family),
    )
    const unclaimed = registered.filter(({ isUnclaimed }) => isUnclaimed)
    const waiting = changes.filter(({ isWaiting }) => isWaiting)
    const made = changes.filter(({ madeAt }) => madeAt !== null)
    return sendPage(ctx, request, reply, {
      screen: 'wallets',
      title: texts.title.replace('{store}', storeName),
      main: html`<div class="head plain"><h1>${fill(texts.title, { store: storeName })}</h1></div>
<section class="pane">
${waiting.length > 0 && html`<h2>${texts.waiting}</h2><ul class="things">${waiting.map((each) => renderWaiting(page, each))}</ul>`}
${unclaimed.length > 0 && html`<h2>${texts.unclaimed}</h2><ul class="things">${unclaimed.map((each) => renderUnclaimed(page, each))}</ul>`}
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
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await confirmChange(forStore(ctx, storeId), storeId, touch, textOf(fields, 'changeId'), ctx.now())
    return reply.code(303).header('location', `/stores/${storeId}/wallets`).send()
  })

  scope.post(`${path}/refuse`, write, async (request, reply) => {
    const { storeId } = storeOf(request)
    const { member } = sessionOf(request)
    const changeId = textOf(fieldsOf(request), 'changeId')
    await refuseChange(forStore(ctx, storeId), storeId, member, changeId, ctx.now())
    return reply.code(303).header('location', `/stores/${storeId}/wallets`).send()
  })

  scope.post(`${path}/undo`, write, async (request, reply) => {
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    const cancelsOpen = textOf(fields, 'cancelsOpen') === 'yes'
    const changeId = textOf(fields, 'changeId')
    await undoChange(forStore(ctx, storeId), storeId, touch, changeId, cancelsOpen, ctx.now())
    return reply.code(303).header('location', `/stores/${storeId}/wallets`).send()
  })

  scope.post(`${path}/setting`, write, async (request, reply) => {
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const walletChanges = textOf(fields, 'walletChanges')
    if (!isChoice(walletChanges)) throw new Refusal('invalid')
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await confirmSetting(forStore(ctx, storeId), storeId, touch, walletChanges, ctx.now())
    return reply.code(303).header('location', `/stores/${storeId}/wallets`).send()
  })

  scope.post(`${path}/seen`, read, async (request, reply) => {
    const { storeId } = storeOf(request)
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await putAwayNews(ctx, storeId, touch, textOf(fields, 'until'), ctx.now())
    return reply.code(303).header('location', `/stores/${storeId}/wallets`).send()
  })
}

type Page = {
  readonly ctx: Context
  readonly store: Store
  /** The form's token, and the store. */
  readonly form: Html
  readonly language: Language
  readonly mayChange: boolean
}

/** The newest wallets, of which those that wait for a signature are shown. */
const registeredMax = 50

const choices: readonly WalletChanges[] = ['member', 'key']

function isChoice(text: string): text is WalletChanges {
  return (choices as readonly string[]).includes(text)
}

/** What people call the networks of a family that this deployment offers. */
function nameFamily({ ctx, store }: Page, family: Family): string {
  const offered = networksFor(ctx, store.mode).filter((network) => network.family === family)
  return offered.map(({ name }) => name).join(', ') || family
}

function show(address: string): Html {
  return html`<bdi class="address">${address}</bdi>`
}

function renderCurrent(page: Page, family: Family, wallet: Wallet | undefined): Html {
  const network = nameFamily(page, family)
  const { wallets: texts } = page.language.texts
  if (!wallet) return html`<li><p>${network}<small>${texts.none}</small></p></li>`
  const { address, provenAt, isElsewhere } = wallet
  if (isElsewhere) return html`<li><p>${network} ${show(address)}<small>${texts.elsewhere}</small></p></li>`
  return html`<li><p>${network} ${show(address)}<small>${
    provenAt ? fill(texts.proven, { time: when(provenAt, page.language) }) : texts.unproven
  }</small></p></li>`
}

/** A wallet that this cell may not use yet. */
function renderUnclaimed(page: Page, wallet: Wallet): Html {
  const { wallets: texts } = page.language.texts
  const proven = html`<a href="${page.ctx.config.baseUrl}/docs/api/guide#wallets">${texts.unclaimedProven}</a>`
  return html`<li><p>${nameFamily(page, wallet.family)} ${show(wallet.address)}<small>${
    claimsByProof(wallet) ? fill(texts.unclaimedAbout, { proven }) : texts.unclaimedCustodial
  }</small></p></li>`
}

function renderWaiting(page: Page, change: WalletChange): Html {
  const { id, storeId, family, kind, wallet, actor, askedAt, expiresAt } = change
  const { wallets: texts } = page.language.texts
  const fields = html`${page.form}<input type="hidden" name="changeId" value="${id}">`
  const asked = fill(expiresAt ? texts.askedByUntil : texts.askedBy, {
    who: nameActor(actor, page.language),
    time: when(askedAt, page.language),
    until: expiresAt ? when(expiresAt, page.language) : '',
  })
  const wish = fill(kind === 'use' ? texts.askUse : texts.askRetire, {
    network: nameFamily(page, family),
    address: show(wallet.address),
  })
  return html`<li><p>${wish}<small>${asked} ${!wallet.isProven && html`${texts.unproven}. `}${kind === 'use' ? texts.compare : texts.staysInUse}</small></p>${
    page.mayChange &&
    html`<form method="post" action="/stores/${storeId}/wallets/confirm" data-confirm="wallet.confirm">${fields}<input type="hidden" name="kind" value="${kind}"><input type="hidden" name="address" value="${wallet.address}"><button>${texts.confirm}</button></form>
<form method="post" action="/stores/${storeId}/wallets/refuse">${fields}<button class="quiet">${texts.refuse}</button></form>`
  }</li>`
}

function renderMade(page: Page, made: readonly WalletChange[]): Html {
  const { wallets: texts } = page.language.texts
  const revoke = html`<a href="${page.ctx.config.baseUrl}/docs/keys#if-a-key-is-stolen">${texts.revoke}</a>`
  return html`<h2>${texts.recent}</h2>
<p class="soft">${texts.recentAbout}</p>
${page.store.walletChanges === 'key' && html`<p class="note">${fill(texts.keyEnough, { revoke })}</p>`}
<ul class="things">${made.map((each) => renderChange(page, each))}</ul>`
}

function renderChange(page: Page, change: WalletChange): Html {
  const { id, storeId, family, previous, madeAt, isUndoable, undoneAt } = change
  const { language, form } = page
  const { wallets: texts } = language.texts
  const button = previous
    ? html`<button>${fill(texts.goBack, { address: shorten(previous.address) })}</button>`
    : html`<button class="quiet">${texts.stopUsing}</button>`
  return html`<li><p>${nameFamily(page, family)}: ${describeChange(change, language)}<small>${madeAt && when(madeAt, language)}${
    undoneAt && html`, ${fill(texts.undone, { time: when(undoneAt, language) })}`
  }${previous && !undoneAt && html`. ${fill(texts.before, { address: show(previous.address) })}`}</small></p>${
    page.mayChange &&
    isUndoable &&
    html`<form method="post" action="/stores/${storeId}/wallets/undo" data-confirm="wallet.undo" class="undo">${form}<input type="hidden" name="changeId" value="${id}"><input type="hidden" name="address" value="${previous?.address ?? ''}">
<label class="check"><input type="checkbox" name="cancelsOpen" value="yes" checked>${previous ? texts.cancelOther : texts.cancelIt}</label>
${button}</form>`
  }</li>`
}

function shorten(address: string): string {
  return `${address.slice(0, 6)}…${address.slice(-4)}`
}

function renderSetting({ store: { id, walletChanges }, form, language, mayChange }: Page): Html {
  const { wallets: texts } = language.texts
  if (!mayChange) return html`<p>${texts.choices[walletChanges]}.</p>`
  return html`<form method="post" action="/stores/${id}/wallets/setting" data-confirm="wallet.setting" class="fields">${form}
<label>${texts.whoLabel}<select name="walletChanges">${choices.map(
    (choice) =>
      html`<option value="${choice}"${choice === walletChanges ? html` selected` : null}>${texts.choices[choice]}</option>`,
  )}</select></label>
<div><button class="quiet">${texts.save}</button></div>
</form>`
}
