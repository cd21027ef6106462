import type { StoreStanding } from '@farthing/sdk'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { isId, type StoreId } from '../../../ids.ts'
import { readTouch } from '../../../members/confirm.ts'
import type { NewInvitation } from '../../../members/invite.ts'
import { Refusal } from '../../../members/refusal.ts'
import type { Mode } from '../../../networks.ts'
import { checkText } from '../../../stores/check-text.ts'
import {
  countWaiting,
  createStoreAsOperator,
  decideAsOperator,
  inviteOwnerAsOperator,
  listOverviews,
  readOverview,
  type StoreOverview,
} from '../../../stores/operate.ts'
import { type Decision, reasonBytesMax } from '../../../stores/standing.ts'
import { networksFor } from '../../../stores/store.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { type Page, sendPage } from '../document.ts'
import { fieldsOf, readEmail, readName, readText, textOf, touchOf } from '../fields.ts'
import { formField } from '../form-field.ts'
import { localeOf, showCount, showExactTime, showTime } from '../formats.ts'
import { renderCommand, renderHead, sendSecret } from '../parts.ts'
import { textsOf } from '../texts/choose.ts'
import { giveFormToken, sessionOf } from '../visitor.ts'
import type { Deployment } from './deployment.ts'

const path = '/operator/stores'
const perPage = 50
/** What an operator looks for is shorter. */
const searchMax = 100
const standings: readonly StoreStanding[] = ['waiting', 'unproven', 'approved', 'suspended']
const modes: readonly Mode[] = ['live', 'test']
const verbs = ['approve', 'suspend', 'resume'] as const

/** Every store's name and health; approving, suspending, resuming; creating one with a link for its owner. */
export function mountStores(scope: FastifyInstance, ctx: Context, deployment: Deployment): void {
  const { db } = deployment.ctx

  scope.get(path, async (request, reply) => {
    const query = request.query as Readonly<Record<string, unknown>>
    const search = textOf(query, 'q').trim().slice(0, searchMax)
    const standing = standings.find((each) => each === query.standing) ?? null
    const before = isId('st', textOf(query, 'before')) ? textOf(query, 'before') : null
    const [found, waiting] = await Promise.all([
      listOverviews(db, { search, standing, before, limit: perPage + 1 }),
      countWaiting(db),
    ])
    const texts = textsOf(request).stores.stores
    const locale = localeOf(request)
    const shown = found.slice(0, perPage)
    const last = found.length > perPage ? shown.at(-1) : undefined
    const toHere = (change: Readonly<Record<string, string>>) =>
      `${path}?${new URLSearchParams(Object.entries({ q: search, standing: standing ?? '', ...change }).filter(([, value]) => value !== ''))}`
    const isFiltered = search !== '' || standing !== null || before !== null
    return await sendPage(ctx, request, reply, {
      screen: 'stores',
      title: texts.title,
      main: html`<div class="head plain"><div><h1>${texts.title}</h1><p class="soft">${texts.about}</p></div>
<div class="row">${
        waiting > 0 &&
        html`<a class="filter" href="${path}?standing=waiting">${fill(texts.waiting, {
          count: showCount(locale, waiting),
        })}</a>`
      }<a class="button" href="${path}/new">${texts.create}</a></div></div>
<section class="pane stack">
<form class="find" role="search" action="${path}">${
        standing && html`<input type="hidden" name="standing" value="${standing}">`
      }<input type="search" name="q" value="${search}" placeholder="${texts.search}" aria-label="${
        texts.search
      }" maxlength="${String(searchMax)}" autocomplete="off"><button class="quiet">${texts.find}</button></form>
<nav class="row" aria-label="${texts.filters}"><a class="filter" href="${toHere({ standing: '' })}"${
        standing === null && html` aria-current="true"`
      }>${texts.all}</a>${standings.map(
        (each) =>
          html`<a class="filter" href="${toHere({ standing: each })}"${
            each === standing && html` aria-current="true"`
          }>${texts.standings[each]}</a>`,
      )}</nav>
</section>
${
  shown.length === 0
    ? html`<p class="pane empty">${isFiltered ? texts.notFound : texts.empty}</p>`
    : renderTable(request, shown, ctx.now())
}
${
  last !== undefined &&
  html`<div class="ends"><span></span><a class="button quiet" href="${toHere({ before: last.id })}">${
    texts.older
  }</a></div>`
}
${renderCommand(textsOf(request), 'farthing-admin store list')}`,
    })
  })

  scope.get(`${path}/new`, async (request, reply) => {
    const texts = textsOf(request).stores.create
    const offered = modes.filter((mode) => networksFor(ctx, mode).length > 0)
    const [first = 'live'] = offered
    const flag = first === 'test' ? ' --test' : ''
    return await sendPage(ctx, request, reply, {
      screen: 'stores',
      title: texts.title,
      main: html`${renderHead(texts.title, { about: texts.about })}
<section class="pane">
<form method="post" action="${path}" data-confirm="store.create" class="fields">${formField(
        giveFormToken(ctx, request, reply),
      )}
<label>${texts.storeName}<input name="storeName" required maxlength="100" autocomplete="off"></label>
<label>${texts.mode}<select name="mode">${offered.map(
        (mode) => html`<option value="${mode}">${texts[mode]}</option>`,
      )}</select></label>
<label>${texts.name}<input name="name" required maxlength="100" autocomplete="off"></label>
<label>${texts.email}<input name="email" type="email" maxlength="200" autocomplete="off"></label>
<div class="buttons"><button>${texts.button}</button><a href="${path}">${textsOf(request).stores.back}</a></div>
</form></section>
${renderCommand(
  textsOf(request),
  `farthing-admin store create --name "NAME"${flag}\nfarthing-admin member invite STORE --name "OWNER"`,
)}`,
    })
  })

  scope.get(`${path}/:id`, async (request, reply) => {
    const { id } = request.params as { id: string }
    const store = await readOverview(db, id)
    if (!store) throw new Refusal('not_found')
    return await sendPage(ctx, request, reply, {
      screen: 'stores',
      title: store.name,
      main: renderStore(request, store, formField(giveFormToken(ctx, request, reply))),
    })
  })

  scope.post(path, async (request, reply) => {
    const fields = fieldsOf(request)
    const texts = textsOf(request).stores.create
    const mode = modes.find((each) => each === fields.mode)
    if (!mode) throw new Refusal('invalid')
    const storeName = readText(request, 'storeName', texts.storeName)
    const [name, email] = [readName(request, 'name'), readEmail(request)]
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    const made = await createStoreAsOperator(ctx, touch, { storeName, mode, name, email }, ctx.now())
    return await sendLink(ctx, request, reply, made)
  })

  scope.post(`${path}/invite`, async (request, reply) => {
    const fields = fieldsOf(request)
    const storeId = readStoreId(fields)
    const [name, email] = [readName(request, 'name'), readEmail(request)]
    const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
    const made = await inviteOwnerAsOperator(ctx, storeId, touch, { name, email }, ctx.now())
    return await sendLink(ctx, request, reply, made)
  })

  for (const verb of verbs) {
    scope.post(`${path}/${verb}`, async (request, reply) => {
      const fields = fieldsOf(request)
      const storeId = readStoreId(fields)
      const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
      const decision: Decision =
        verb === 'suspend' ? { verb, reason: readReason(textOf(fields, 'reason')) } : { verb }
      await decideAsOperator(ctx, storeId, touch, decision, ctx.now())
      return reply.code(303).header('location', `${path}/${storeId}`).send()
    })
  }
}

function readStoreId(fields: ReturnType<typeof fieldsOf>): StoreId {
  const storeId = textOf(fields, 'storeId')
  if (!isId('st', storeId)) throw new Refusal('not_found')
  return storeId
}

function readReason(reason: string): string {
  if (checkText('reason', reason, reasonBytesMax).length > 0) throw new Refusal('invalid')
  return reason
}

function renderStanding(request: FastifyRequest, standing: StoreStanding): Html {
  const colour = { waiting: 'busy', unproven: 'busy', approved: 'good', suspended: 'bad' }[standing]
  return html`<span class="chip ${colour}">${textsOf(request).stores.stores.standings[standing]}</span>`
}

function renderHealth(
  request: FastifyRequest,
  { hasOwner, hasWallet, failingEndpoints }: StoreOverview,
): Html {
  const texts = textsOf(request).stores.stores
  const troubles = [
    !hasOwner && html`<span class="chip">${texts.noOwner}</span>`,
    !hasWallet && html`<span class="chip">${texts.noWallet}</span>`,
    failingEndpoints > 0 && html`<span class="chip bad">${texts.failing}</span>`,
  ].filter((each) => each !== false)
  return troubles.length === 0 ? html`${texts.healthy}` : html`${troubles.map((each) => html`${each} `)}`
}

function renderTable(request: FastifyRequest, stores: readonly StoreOverview[], now: Date): Html {
  const texts = textsOf(request).stores.stores
  const locale = localeOf(request)
  return html`<div class="table" tabindex="0" role="region" aria-label="${texts.title}"><table class="cards"><thead><tr>
<th scope="col">${texts.name}</th><th scope="col">${texts.standing}</th>
<th scope="col">${texts.health}</th><th scope="col">${texts.since}</th></tr></thead>
<tbody>${stores.map(
    (store) =>
      html`<tr><td class="c1"><a class="whole" href="${path}/${store.id}">${store.name}</a>${
        store.mode === 'test' && html` <span class="chip">${texts.test}</span>`
      }</td><td class="c2">${renderStanding(request, store.standing)}</td>
<td class="c3">${renderHealth(request, store)}</td><td class="c4">${showTime(locale, store.createdAt, now)}</td></tr>`,
  )}</tbody></table></div>`
}

function renderStore(request: FastifyRequest, store: StoreOverview, field: Html): Html {
  const texts = textsOf(request).stores
  const locale = localeOf(request)
  const { id, standing, suspendedReason, isSignedUp, provenAt } = store
  const hidden = html`${field}<input type="hidden" name="storeId" value="${id}">`
  const isOpen = standing === 'waiting' || standing === 'unproven'
  const command = { waiting: 'approve', unproven: 'approve', approved: 'suspend', suspended: 'resume' }[
    standing
  ]
  return html`<div class="head plain"><div><p class="soft"><a href="${path}">${texts.back}</a></p>
<h1>${store.name} ${renderStanding(request, standing)}</h1><p class="soft">${texts.store.about[standing]}</p></div>
<div class="row">${
    isOpen &&
    html`<form method="post" action="${path}/approve" data-confirm="store.approve">${hidden}<button>${
      texts.store.approve
    }</button></form>`
  }${
    standing === 'suspended' &&
    html`<form method="post" action="${path}/resume" data-confirm="store.resume">${hidden}<button>${
      texts.store.resume
    }</button></form>`
  }</div></div>
${
  suspendedReason !== null &&
  html`<section class="pane"><div class="note"><p class="label">${texts.store.reason}</p>
<p>${suspendedReason}</p></div></section>`
}
<section class="pane stack"><dl class="list">
<div><dt>${texts.store.id}</dt><dd><code>${id}</code></dd></div>
<div><dt>${texts.store.mode}</dt><dd>${texts.store[store.mode]}</dd></div>
<div><dt>${texts.store.opened}</dt>
<dd>${showExactTime(locale, store.createdAt)}, ${isSignedUp ? texts.store.bySignUp : texts.store.byOperator}</dd></div>
<div><dt>${texts.store.proof}</dt>
<dd>${provenAt ? html`${texts.store.proven}, ${showExactTime(locale, provenAt)}` : texts.store.unproven}</dd></div>
<div><dt>${texts.stores.health}</dt><dd>${renderHealth(request, store)}</dd></div>
</dl>${isSignedUp && !provenAt && html`<p class="soft">${texts.store.limited}</p>`}</section>
${!store.hasOwner && renderInvite(request, hidden)}
${
  standing !== 'suspended' &&
  html`<section class="pane stack"><h2>${texts.store.suspend}</h2><p class="soft words">${texts.store.suspendAbout}</p>
<form method="post" action="${path}/suspend" data-confirm="store.suspend" class="fields">${hidden}<label>${
    texts.store.suspendReason
  }<input name="reason" required maxlength="${String(reasonBytesMax)}" autocomplete="off"></label>
<div><button class="quiet">${texts.store.suspend}</button></div></form></section>`
}
${renderCommand(
  textsOf(request),
  `farthing-admin store ${command} ${id}${command === 'suspend' ? ' --reason "REASON"' : ''}`,
)}`
}

function renderInvite(request: FastifyRequest, hidden: Html): Html {
  const { store: texts, create } = textsOf(request).stores
  return html`<section class="pane stack"><h2>${texts.owner}</h2><p class="soft words">${texts.ownerAbout}</p>
<form method="post" action="${path}/invite" data-confirm="store.invite" class="fields">${hidden}
<label>${create.name}<input name="name" required maxlength="100" autocomplete="off"></label>
<label>${create.email}<input name="email" type="email" maxlength="200" autocomplete="off"></label>
<div><button class="quiet">${texts.invite}</button></div></form></section>`
}

/** In the answer itself and in no URL: the link is a secret, and it is shown once. */
async function sendLink(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  { link, invitation, isMailed }: NewInvitation,
): Promise<FastifyReply> {
  const { name, email, storeId, expiresAt } = invitation
  const texts = textsOf(request).stores.link
  const about = fill(texts.about, { time: showExactTime(localeOf(request), expiresAt) })
  const send = (page: Page) => sendPage(ctx, request, reply, page)
  return await sendSecret(
    { send, texts: textsOf(request) },
    {
      title: texts.title,
      heading: fill(texts.heading, { name }),
      about: html`${about}${isMailed && html` ${fill(texts.mailed, { email: email ?? '' })}`}`,
      secret: link,
      copy: texts.copy,
      back: { href: `${path}/${storeId}`, text: texts.back },
    },
  )
}
