import type { StoreStanding } from '@farthing/sdk'
import type { Mode } from '../../../../networks.ts'
import type { StoreOverview } from '../../../../stores/operate.ts'
import { reasonBytesMax } from '../../../../stores/standing.ts'
import { fill, type Html, html } from '../../../page/html.ts'
import { showCount, showExactTime, showTime } from '../../formats.ts'
import {
  renderChip,
  renderChooser,
  renderCommand,
  renderFact,
  renderField,
  renderFilter,
  renderHead,
  renderHidden,
  renderPager,
  renderTable,
} from '../../parts.ts'
import { type Page, withQuery } from '../../screen.ts'

export const path = '/operator/stores'
/** Longer than any name that an operator searches for. */
export const searchMax = 100
export const standings: readonly StoreStanding[] = ['waiting', 'unproven', 'approved', 'suspended']

export type StoreList = {
  readonly stores: readonly StoreOverview[]
  readonly search: string
  readonly standing: StoreStanding | null
  readonly before: string | null
  /** Where the next page begins; null on the last one. */
  readonly next: string | null
  /** How many stores wait to be approved. */
  readonly waiting: number
}

export function renderList(page: Page, list: StoreList): Html {
  const { stores, search, standing, before, next, waiting } = list
  const texts = page.texts.stores.stores
  const toHere = (change: Readonly<Record<string, string>>) =>
    withQuery(path, { q: search, standing, ...change })
  const isFiltered = search !== '' || standing !== null || before !== null
  const count = fill(texts.waiting, { count: showCount(page.locale, waiting) })
  const aside = html`<div class="row">${
    waiting > 0 && html`<a class="filter" href="${path}?standing=waiting">${count}</a>`
  }<a class="button" href="${path}/new">${texts.create}</a></div>`
  const filters = standings.map((each) =>
    renderFilter(toHere({ standing: each }), texts.standings[each], each === standing),
  )
  return html`${renderHead(texts.title, { about: texts.about, aside })}
<section class="pane stack">
<form class="find" role="search" action="${path}">${standing && renderHidden('standing', standing)}
<input type="search" name="q" value="${search}" placeholder="${texts.search}" aria-label="${texts.search}"
maxlength="${searchMax}" autocomplete="off"><button class="quiet">${texts.find}</button></form>
<nav class="row" aria-label="${texts.filters}">${renderFilter(
    toHere({ standing: '' }),
    texts.all,
    standing === null,
  )}${filters}</nav>
</section>
${
  stores.length === 0
    ? html`<p class="pane empty">${isFiltered ? texts.notFound : texts.empty}</p>`
    : renderStores(page, stores)
}
${renderPager({ newest: '', older: texts.older }, null, next === null ? null : toHere({ before: next }))}
${renderCommand(page.texts, 'farthing-admin store list')}`
}

function renderStores(page: Page, stores: readonly StoreOverview[]): Html {
  const { locale, now } = page
  const texts = page.texts.stores.stores
  const row = (store: StoreOverview) => html`<tr><td class="c1"><a class="whole" href="${path}/${store.id}">${
    store.name
  }</a>${store.mode === 'test' && html` ${renderChip(texts.test)}`}</td>
<td class="c2">${renderStanding(page, store.standing)}</td>
<td class="c3">${renderHealth(page, store)}</td>
<td class="c4">${showTime(locale, store.createdAt, now)}</td></tr>`
  return renderTable([texts.name, texts.standing, texts.health, texts.since], stores.map(row), texts.title)
}

function renderStanding({ texts }: Page, standing: StoreStanding): Html {
  const tones = { waiting: 'busy', unproven: 'busy', approved: 'good', suspended: 'bad' } as const
  return renderChip(texts.stores.stores.standings[standing], tones[standing])
}

function renderHealth(page: Page, { hasOwner, hasWallet, failingEndpoints }: StoreOverview): Html {
  const texts = page.texts.stores.stores
  const troubles = [
    !hasOwner && renderChip(texts.noOwner),
    !hasWallet && renderChip(texts.noWallet),
    failingEndpoints > 0 && renderChip(texts.failing, 'bad'),
  ].filter((each) => each !== false)
  return troubles.length === 0 ? html`${texts.healthy}` : html`${troubles.map((each) => html`${each} `)}`
}

export function renderCreate(page: Page, offered: readonly Mode[]): Html {
  const texts = page.texts.stores.create
  const [first = 'live'] = offered
  const flag = first === 'test' ? ' --test' : ''
  const options = offered.map((mode) => [mode, texts[mode]] as const)
  const commands = [
    `farthing-admin store create --name "NAME"${flag}`,
    'farthing-admin member invite STORE --name "OWNER"',
  ]
  return html`${renderHead(texts.title, { about: texts.about })}
<section class="pane">
<form method="post" action="${path}" data-confirm="store.create" class="fields">${page.formFields}
${renderField(texts.storeName, 'storeName', { required: true, maxlength: 100, autocomplete: 'off' })}
${renderChooser(texts.mode, 'mode', first, options)}
${renderOwner(page)}
<div class="buttons"><button>${texts.button}</button><a href="${path}">${page.texts.stores.back}</a></div>
</form></section>
${renderCommand(page.texts, commands.join('\n'))}`
}

/** Whom the link for the owner is for. */
function renderOwner({ texts }: Page): Html {
  const { name, email } = texts.stores.create
  return html`${renderField(name, 'name', { required: true, maxlength: 100, autocomplete: 'off' })}
${renderField(email, 'email', { type: 'email', maxlength: 200, autocomplete: 'off' })}`
}

const verbs = { waiting: 'approve', unproven: 'approve', approved: 'suspend', suspended: 'resume' } as const

export function renderStore(page: Page, store: StoreOverview): Html {
  const { formFields, texts } = page
  const { id, standing, suspendedReason } = store
  const hidden = html`${formFields}${renderHidden('storeId', id)}`
  const verb = verbs[standing]
  const act =
    verb !== 'suspend' &&
    html`<form method="post" action="${path}/${verb}" data-confirm="store.${verb}">${hidden}
<button>${texts.stores.store[verb]}</button></form>`
  const reason = verb === 'suspend' ? ' --reason "REASON"' : ''
  return html`${renderHead(html`${store.name} ${renderStanding(page, standing)}`, {
    above: html`<p class="soft"><a href="${path}">${texts.stores.back}</a></p>`,
    about: texts.stores.store.about[standing],
    aside: html`<div class="row">${act}</div>`,
  })}
${
  suspendedReason !== null &&
  html`<section class="pane"><div class="note"><p class="label">${texts.stores.store.reason}</p>
<p>${suspendedReason}</p></div></section>`
}
${renderFacts(page, store)}
${!store.hasOwner && renderInvite(page, hidden)}
${standing !== 'suspended' && renderSuspend(page, hidden)}
${renderCommand(texts, `farthing-admin store ${verb} ${id}${reason}`)}`
}

function renderFacts(page: Page, store: StoreOverview): Html {
  const { locale } = page
  const { store: texts, stores } = page.texts.stores
  const { id, mode, createdAt, isSignedUp, provenAt } = store
  const opened = html`${showExactTime(locale, createdAt)}, ${isSignedUp ? texts.bySignUp : texts.byOperator}`
  const proof = provenAt ? html`${texts.proven}, ${showExactTime(locale, provenAt)}` : texts.unproven
  return html`<section class="pane stack"><dl class="list">
${renderFact(texts.id, html`<code>${id}</code>`)}
${renderFact(texts.mode, texts[mode])}
${renderFact(texts.opened, opened)}
${renderFact(texts.proof, proof)}
${renderFact(stores.health, renderHealth(page, store))}
</dl>${isSignedUp && !provenAt && html`<p class="soft">${texts.limited}</p>`}</section>`
}

function renderInvite(page: Page, hidden: Html): Html {
  const { store: texts } = page.texts.stores
  return html`<section class="pane stack"><h2>${texts.owner}</h2><p class="soft words">${texts.ownerAbout}</p>
<form method="post" action="${path}/invite" data-confirm="store.invite" class="fields">${hidden}
${renderOwner(page)}
<div><button class="quiet">${texts.invite}</button></div></form></section>`
}

function renderSuspend({ texts: { stores } }: Page, hidden: Html): Html {
  const { suspend, suspendAbout, suspendReason } = stores.store
  const reason = { required: true, maxlength: reasonBytesMax, autocomplete: 'off' }
  return html`<section class="pane stack"><h2>${suspend}</h2><p class="soft words">${suspendAbout}</p>
<form method="post" action="${path}/suspend" data-confirm="store.suspend" class="fields">${hidden}
${renderField(suspendReason, 'reason', reason)}
<div><button class="quiet">${suspend}</button></div></form></section>`
}
