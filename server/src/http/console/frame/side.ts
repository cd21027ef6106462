import type { FastifyRequest } from 'fastify'
import type { Membership } from '../../../members/member.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { type Texts, textsOf } from '../texts/choose.ts'
import { renderChoices } from './choices.ts'
import { operatorScreens, type ScreenId, screensOf, startOf } from './screens.ts'

/** What surrounds a screen. */
export type Frame = {
  readonly screen: ScreenId | null
  readonly stores: readonly Membership[]
  /** The store of the screen. */
  readonly store: Membership | null
  readonly isOperator: boolean
  /** Payments that wait for a decision; null if they were not counted. */
  readonly undecided: number | null
  /** The store's first steps are not all done or skipped. */
  readonly hasStepsLeft: boolean
  readonly memberName: string
  readonly formField: Html
}

/** Beyond this many, the number says nothing that "more" would not. */
export const countMax = 99

export function renderBand(request: FastifyRequest, { store }: Frame): Html | null {
  const texts = textsOf(request).frame
  return store?.mode === 'test'
    ? html`<p class="band"><span>${texts.testStore}</span><span>${texts.noMoney}</span></p>`
    : null
}

export function renderSide(request: FastifyRequest, frame: Frame): Html {
  const { frame: texts, signOut } = textsOf(request)
  const { store, memberName, formField } = frame
  const here = frame.screen === null && !store && html` aria-current="page"`
  const leave = html`<form method="post" action="/sign-out">${formField}
<button class="plainly">${signOut}</button></form>`
  return html`<header class="side">
${renderSwitch(request, frame)}
${store && renderSearch(request, store)}
<nav class="nav" id="menu" aria-label="${texts.main}">${renderEntries(request, frame)}
<a class="more" href="#menu">${icon('M2 4h12M2 8h12M2 12h12')}${texts.more}</a>
<a class="less" href="#main">${texts.close}</a></nav>
<div class="me"><a href="/account"${here}>${memberName}</a>
<div class="soft">${store && html`${texts.roles[store.role]} · `}${leave}</div>
${renderChoices(request)}</div>
</header>`
}

function renderSwitch(request: FastifyRequest, { stores, store, isOperator }: Frame): Html {
  const texts = textsOf(request).frame
  const name = store?.storeName ?? texts.stores
  const mark = [...name.toLocaleUpperCase()][0] ?? ''
  const entry = (each: Membership) => {
    const current = each === store && html` aria-current="true"`
    const test = each.mode === 'test' && html` <span class="chip">${texts.test}</span>`
    return html`<li><a href="${startOf(each)}"${current}>${each.storeName}${test}</a></li>`
  }
  const operator = operatorScreens[0]?.path ?? ''
  const summary = html`<span class="mark" aria-hidden="true">${mark}</span><span>${name}</span>`
  return html`<details class="switch"><summary>${summary}</summary>
<ul>${stores.map(entry)}
${isOperator && html`<li><a href="/operator${operator}">${texts.operator}</a></li>`}
<li><a href="/account">${texts.account}</a></li></ul></details>`
}

/** Left out on the screen with its own search, and for members who cannot see payments. */
function renderSearch(request: FastifyRequest, store: Membership): Html | null {
  const { search, searchFor } = textsOf(request).frame
  const isThere = request.routeOptions.url?.endsWith('/payments') === true
  if (isThere || !screensOf(store).some(({ id }) => id === 'payments')) return null
  return html`<form class="find" role="search" action="/stores/${store.storeId}/payments">
<input type="search" name="q" placeholder="${search}" aria-label="${searchFor}" maxlength="200" autocomplete="off">
</form>`
}

function renderEntries(request: FastifyRequest, frame: Frame): Html {
  const { screen, store, isOperator, undecided, hasStepsLeft } = frame
  const texts = textsOf(request).frame
  const base = store ? `/stores/${store.storeId}` : '/operator'
  const start = { id: 'start', path: '/start', icon: 'M3 14.25v-12M3 3h9.5l-2 3 2 3H3' } as const
  const screens = store ? screensOf(store) : isOperator ? operatorScreens : []
  const entries: typeof operatorScreens = hasStepsLeft ? [start, ...screens] : screens
  return html`${entries.map(({ id, path, icon: shape, isMain, isApart }) => {
    const classes = [isMain && 'main', isApart && 'gap'].filter(Boolean).join(' ')
    const kind = classes !== '' && html` class="${classes}"`
    const current = id === screen && html` aria-current="page"`
    const count = id === 'inbox' && undecided !== null && undecided > 0 && renderCount(undecided, texts)
    return html`<a href="${base}${path}"${kind}${current}>${icon(shape)}${texts.screens[id]}${count}</a>`
  })}`
}

function renderCount(undecided: number, texts: Texts['frame']): Html {
  const count = undecided > countMax ? `${countMax}+` : `${undecided}`
  const said = html`<span class="unseen"> ${fill(texts.toDecide, { count })}</span>`
  return html`<span class="count"><span aria-hidden="true">${count}</span>${said}</span>`
}

function icon(path: string): Html {
  return html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${path}"/></svg>`
}
