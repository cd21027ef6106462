import type { FastifyRequest } from 'fastify'
import type { Membership } from '../../../members/member.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { languageOf, languages, type Texts, textsOf } from '../texts/choose.ts'
import { operatorScreens, type ScreenId, screensOf, startOf } from './screens.ts'
import { themeOf, themes } from './theme.ts'

/** What surrounds a screen. */
export type Frame = {
  readonly screen: ScreenId | null
  readonly stores: readonly Membership[]
  /** The store of the screen. */
  readonly store: Membership | null
  readonly isOperator: boolean
  /** Payments that wait for a decision; null where nobody asks. */
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
  const texts = textsOf(request).frame
  const { store, memberName, formField } = frame
  return html`<header class="side">
${renderSwitch(request, frame)}
${store && renderSearch(request, store)}
<nav class="nav" id="menu" aria-label="${texts.main}">${renderEntries(request, frame)}
<a class="more" href="#menu">${icon('M2 4h12M2 8h12M2 12h12')}${texts.more}</a><a class="less" href="#main">${texts.close}</a></nav>
<div class="me"><a href="/account"${frame.screen === null && !store && html` aria-current="page"`}>${memberName}</a>
<div class="soft">${store && html`${texts.roles[store.role]} · `}<form method="post" action="/sign-out">${formField}<button class="plainly">${languageOf(request).texts.signOut}</button></form></div>
${renderChoices(request)}</div>
</header>`
}

function renderSwitch(request: FastifyRequest, { stores, store, isOperator }: Frame): Html {
  const texts = textsOf(request).frame
  const name = store?.storeName ?? texts.stores
  const mark = [...name.toLocaleUpperCase()][0] ?? ''
  const entry = (each: Membership) =>
    html`<li><a href="${startOf(each)}"${each === store && html` aria-current="true"`}>${each.storeName}${each.mode === 'test' && html` <span class="chip">${texts.test}</span>`}</a></li>`
  const [operator] = operatorScreens
  return html`<details class="switch"><summary><span class="mark" aria-hidden="true">${mark}</span><span>${name}</span></summary>
<ul>${stores.map(entry)}${isOperator && operator !== undefined && html`<li><a href="/operator${operator.path}">${texts.operator}</a></li>`}<li><a href="/account">${texts.account}</a></li></ul></details>`
}

/** Where the store has a screen that finds something; that screen has a search of its own. */
function renderSearch(request: FastifyRequest, store: Membership): Html | null {
  const texts = textsOf(request).frame
  const isThere = request.routeOptions.url?.endsWith('/payments') === true
  if (isThere || !screensOf(store).some(({ id }) => id === 'payments')) return null
  return html`<form class="find" role="search" action="/stores/${store.storeId}/payments"><input type="search" name="q" placeholder="${texts.search}" aria-label="${texts.searchFor}" maxlength="200" autocomplete="off"></form>`
}

function renderEntries(request: FastifyRequest, frame: Frame): Html {
  const { screen, store, isOperator, undecided, hasStepsLeft } = frame
  const texts = textsOf(request).frame
  const entries = store ? screensOf(store) : isOperator ? operatorScreens : []
  const base = store ? `/stores/${store.storeId}` : '/operator'
  const start =
    hasStepsLeft &&
    html`<a href="${base}/start"${screen === 'start' && html` aria-current="page"`}>${icon('M3 14.25v-12M3 3h9.5l-2 3 2 3H3')}${texts.screens.start}</a>`
  return html`${start}${entries.map(({ id, path, icon: shape, isMain, isApart }) => {
    const classes = [isMain && 'main', isApart && 'gap'].filter(Boolean).join(' ')
    const count = id === 'inbox' && undecided !== null && undecided > 0 && renderCount(undecided, texts)
    return html`<a href="${base}${path}"${classes !== '' && html` class="${classes}"`}${id === screen && html` aria-current="page"`}>${icon(shape)}${texts.screens[id]}${count}</a>`
  })}`
}

function renderCount(undecided: number, texts: Texts['frame']): Html {
  const count = undecided > countMax ? `${countMax}+` : `${undecided}`
  return html`<span class="count"><span aria-hidden="true">${count}</span><span class="unseen"> ${fill(texts.toDecide, { count })}</span></span>`
}

function icon(path: string): Html {
  return html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${path}"/></svg>`
}

/**
 * The language and the theme, as links to this very page: they work without a script. The answer to a form has no address
 * to come back to, and may be the only time that a key or a link is shown: no choice leads away from it.
 */
export function renderChoices(request: FastifyRequest): Html | null {
  if (request.method !== 'GET') return null
  const texts = textsOf(request).frame
  const language = languageOf(request)
  const theme = themeOf(request)
  return html`<nav aria-label="${language.texts.languages}">${languages.map(({ tag, name }) => html`<a href="${here(request, 'lang', tag)}" lang="${tag}" hreflang="${tag}"${tag === language.tag && html` aria-current="true"`}>${name}</a>`)}</nav>
<nav aria-label="${texts.theme}">${themes.map((each) => html`<a href="${here(request, 'theme', each)}"${each === theme && html` aria-current="true"`}>${texts.themes[each]}</a>`)}</nav>`
}

/** This page with one more choice. */
function here(request: FastifyRequest, name: string, value: string): string {
  if (request.is404) return `/?${name}=${value}`
  const parameters = new URLSearchParams(request.url.split('?')[1] ?? '')
  parameters.set(name, value)
  return `?${parameters}`
}
