import type { WalletChanges } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import { readTouch } from '../../members/confirm.ts'
import { Refusal } from '../../members/refusal.ts'
import { noteWalletsSeen } from '../../members/rows.ts'
import { type Family, families } from '../../networks.ts'
import { listChanges, type WalletChange } from '../../stores/change-rows.ts'
import { confirmChange, confirmSetting, refuseChange } from '../../stores/confirm.ts'
import { listCurrent, readStore } from '../../stores/rows.ts'
import { networksFor, type Store, type Wallet } from '../../stores/store.ts'
import { undoChange } from '../../stores/undo.ts'
import { type Html, html } from '../page/html.ts'
import { formField, sendPage } from './document.ts'
import { fieldsOf, textOf, touchOf } from './fields.ts'
import { findStore } from './team.ts'
import { forStore, giveFormToken, sessionOf } from './visitor.ts'
import { describeChange, nameActor } from './wallet-news.ts'
import { when } from './when.ts'

const path = '/stores/:storeId/wallets'

/** The wallets that a store is paid to. All members see them; owners confirm, refuse and undo changes. */
export function mountWallets(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, async (request, reply) => {
    const { storeId, storeName, role } = await findStore(ctx, request)
    const { db } = forStore(ctx, storeId)
    const [store, current, changes] = await Promise.all([
      readStore(db, storeId),
      listCurrent(db, storeId),
      listChanges(db, storeId),
    ])
    if (!store) throw new Refusal('not_found')
    const form = html`${formField(giveFormToken(ctx, request, reply))}<input type="hidden" name="storeId" value="${storeId}">`
    const isOwner = role === 'owner'
    const name = ({ family }: { readonly family: Family }) => nameFamily(ctx, store, family)
    const offered = networksFor(ctx, store.mode).map(({ family }) => family)
    const shown = families.filter((family) =>
      [...offered, ...current.map((each) => each.family)].includes(family),
    )
    const waiting = changes.filter(({ isWaiting }) => isWaiting)
    const made = changes.filter(({ madeAt }) => madeAt !== null)
    return sendPage(ctx, request, reply, {
      title: `Wallets of ${storeName}`,
      main: html`<h1>Wallets of ${storeName}</h1>
${waiting.length > 0 && html`<h2>Waiting for an owner</h2><ul class="things">${waiting.map((each) => renderWaiting(name(each), each, isOwner, form))}</ul>`}
<h2>In use</h2>
<ul class="things">${shown.map((family) =>
        renderCurrent(
          name({ family }),
          current.find((each) => each.family === family),
        ),
      )}</ul>
${made.length > 0 && renderMade(ctx, store, made, isOwner, form)}
<h2>Who changes the wallet</h2>
${renderSetting(store, isOwner, form)}
<p><a href="/">Back to your account</a></p>`,
    })
  })

  scope.post(`${path}/confirm`, async (request, reply) => {
    const { storeId } = await findStore(ctx, request)
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await confirmChange(forStore(ctx, storeId), storeId, touch, textOf(fields, 'changeId'), ctx.now())
    return reply.code(303).header('location', `/stores/${storeId}/wallets`).send()
  })

  scope.post(`${path}/refuse`, async (request, reply) => {
    const { storeId } = await findStore(ctx, request)
    const { member } = sessionOf(request)
    await refuseChange(
      forStore(ctx, storeId),
      storeId,
      member,
      textOf(fieldsOf(request), 'changeId'),
      ctx.now(),
    )
    return reply.code(303).header('location', `/stores/${storeId}/wallets`).send()
  })

  scope.post(`${path}/undo`, async (request, reply) => {
    const { storeId } = await findStore(ctx, request)
    const fields = fieldsOf(request)
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    const cancelsOpen = textOf(fields, 'cancelsOpen') === 'yes'
    await undoChange(
      forStore(ctx, storeId),
      storeId,
      touch,
      textOf(fields, 'changeId'),
      cancelsOpen,
      ctx.now(),
    )
    return reply.code(303).header('location', `/stores/${storeId}/wallets`).send()
  })

  scope.post(`${path}/setting`, async (request, reply) => {
    const { storeId } = await findStore(ctx, request)
    const fields = fieldsOf(request)
    const walletChanges = textOf(fields, 'walletChanges')
    if (!isChoice(walletChanges)) throw new Refusal('invalid')
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    await confirmSetting(forStore(ctx, storeId), storeId, touch, walletChanges, ctx.now())
    return reply.code(303).header('location', `/stores/${storeId}/wallets`).send()
  })

  scope.post(`${path}/seen`, async (request, reply) => {
    const { storeId } = await findStore(ctx, request)
    const until = new Date(textOf(fieldsOf(request), 'until'))
    if (Number.isNaN(until.getTime())) throw new Refusal('invalid')
    await noteWalletsSeen(ctx.db, storeId, sessionOf(request).member.id, until)
    return reply.code(303).header('location', '/').send()
  })
}

const choices: Readonly<Record<WalletChanges, string>> = {
  member: 'A key asks, an owner confirms here',
  key: 'A key is enough',
}

function isChoice(text: string): text is WalletChanges {
  return Object.hasOwn(choices, text)
}

/** What people call the networks of a family that this deployment offers. */
function nameFamily(ctx: Context, { mode }: Store, family: Family): string {
  const offered = networksFor(ctx, mode).filter((network) => network.family === family)
  return offered.map(({ name }) => name).join(', ') || family
}

function renderCurrent(network: string, wallet: Wallet | undefined): Html {
  if (!wallet)
    return html`<li><p>${network}<small>No wallet: new checkouts cannot be paid here.</small></p></li>`
  const { address, provenAt } = wallet
  return html`<li><p>${network} <bdi class="address">${address}</bdi><small>${
    provenAt ? html`Proven by a signature on ${when(provenAt)}` : 'Not proven by a signature'
  }</small></p></li>`
}

function renderWaiting(network: string, change: WalletChange, isOwner: boolean, form: Html): Html {
  const { id, storeId, kind, wallet, actor, askedAt, expiresAt } = change
  const fields = html`${form}<input type="hidden" name="changeId" value="${id}">`
  const advice =
    kind === 'use'
      ? 'Compare every character with the address in your own wallet. Nothing is paid to it until an owner confirms.'
      : 'It stays in use until an owner confirms.'
  return html`<li><p>${kind === 'use' ? `Be paid on ${network} to` : `Stop using on ${network}`} <bdi class="address">${wallet.address}</bdi><small>Asked for by ${nameActor(actor)}, ${when(askedAt)}${expiresAt && html`; waits until ${when(expiresAt)}`}. ${
    wallet.isProven ? 'Proven by a signature.' : 'Not proven by a signature.'
  } ${advice}</small></p>${
    isOwner &&
    html`<form method="post" action="/stores/${storeId}/wallets/confirm" data-confirm="wallet.confirm">${fields}<input type="hidden" name="kind" value="${kind}"><input type="hidden" name="address" value="${wallet.address}"><button>Confirm</button></form>
<form method="post" action="/stores/${storeId}/wallets/refuse">${fields}<button class="quiet">Refuse</button></form>`
  }</li>`
}

function renderMade(
  ctx: Context,
  store: Store,
  made: readonly WalletChange[],
  isOwner: boolean,
  form: Html,
): Html {
  return html`<h2>Changes of the last 24 hours</h2>
<p class="soft">If this was not you, go back to the wallet from before. That undoes all later changes of the same network too. If it was changed several times, press the button that names your own wallet.</p>
${
  store.walletChanges === 'key' &&
  html`<p class="notice">In this store a key is enough to change the wallet. Whoever did it with a stolen key can do it again: <a href="${ctx.config.baseUrl}/docs/keys#if-a-key-is-stolen">revoke that key</a>, and let owners confirm changes, below.</p>`
}
<ul class="things">${made.map((each) => renderChange(nameFamily(ctx, store, each.family), each, isOwner, form))}</ul>`
}

function renderChange(network: string, change: WalletChange, isOwner: boolean, form: Html): Html {
  const { id, storeId, previous, madeAt, isUndoable, undoneAt } = change
  return html`<li><p>${network}: ${describeChange(change)}<small>${madeAt && when(madeAt)}${undoneAt && html`, undone ${when(undoneAt)}`}${
    previous && !undoneAt && html`. Before: <bdi class="address">${previous.address}</bdi>`
  }</small></p>${
    isOwner &&
    isUndoable &&
    html`<form method="post" action="/stores/${storeId}/wallets/undo" data-confirm="wallet.undo" class="undo">${form}<input type="hidden" name="changeId" value="${id}"><input type="hidden" name="address" value="${previous?.address ?? ''}">
<label class="check"><input type="checkbox" name="cancelsOpen" value="yes" checked>Cancel open checkouts made since then that pay to ${previous ? 'another wallet' : 'it'}</label>
${previous ? html`<button>Go back to ${shorten(previous.address)}</button>` : html`<button class="quiet">Stop using it</button>`}</form>`
  }</li>`
}

function shorten(address: string): string {
  return `${address.slice(0, 6)}…${address.slice(-4)}`
}

function renderSetting({ id, walletChanges }: Store, isOwner: boolean, form: Html): Html {
  if (!isOwner) return html`<p>${choices[walletChanges]}.</p>`
  return html`<form method="post" action="/stores/${id}/wallets/setting" data-confirm="wallet.setting" class="fields">${form}
<label>To pay new checkouts to another wallet<select name="walletChanges">${Object.entries(choices).map(
    ([choice, text]) =>
      html`<option value="${choice}"${choice === walletChanges ? html` selected` : null}>${text}</option>`,
  )}</select></label>
<div><button class="quiet">Save</button></div>
</form>`
}
