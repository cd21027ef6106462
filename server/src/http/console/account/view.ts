import type { WaitingEmail } from '../../../members/email.ts'
import {
  alertKinds,
  type Membership,
  type Passkey,
  paymentMails,
  type SessionUse,
} from '../../../members/member.ts'
import { type CodesLeft, codesPerSet } from '../../../members/recovery-codes.ts'
import { mayAct } from '../../../members/rights.ts'
import type { ListedSession } from '../../../members/session.ts'
import type { ChosenMails } from '../../../members/silence.ts'
import { fill, type Html, html, lines } from '../../page/html.ts'
import { describeBrowser, showMinute } from '../formats.ts'
import { startOf } from '../frame/screens.ts'
import { renderCheck, renderChoice, renderField, renderHead, renderHidden } from '../parts.ts'
import type { Page } from '../screen.ts'

export type Access = {
  readonly stores: readonly Membership[]
  readonly passkeys: readonly Passkey[]
  /** Null: none were ever made. */
  readonly codes: CodesLeft | null
  /** Operators have no codes. */
  readonly isOperator: boolean
  readonly sessions: readonly ListedSession[]
  /** The session that asks. */
  readonly sessionId: string
  /** Null where no mails are sent. */
  readonly email: Email | null
  /** What the member is mailed, by store; null if nothing is mailed to them. */
  readonly mailed: ReadonlyMap<string, ChosenMails> | null
  /** Of the identity provider; null without one. */
  readonly host: string | null
  readonly isConnected: boolean
}

type Email = {
  readonly current: string | null
  readonly waiting: WaitingEmail | null
  /** Whether one of the member's stores may mail an address that nobody has checked. */
  readonly mayAsk: boolean
}

export function renderAccount(page: Page, account: Access): Html {
  const texts = page.texts.account
  const { stores, passkeys, sessions, sessionId, mailed, host } = account
  const store = (each: Membership) =>
    html`<li><p><a href="${startOf(each)}">${each.storeName}</a><small>${texts.youAre[each.role]}</small></p></li>`
  const name = { required: true, maxlength: 60, placeholder: texts.passkeyExample, autocomplete: 'off' }
  return html`${renderHead(texts.title)}
<section class="pane"><h2>${texts.stores}</h2>
<ul class="things">${stores.map(store)}</ul>
<h2>${texts.passkeys}</h2>
<ul class="things">${passkeys.map((each) => renderPasskey(page, each, passkeys.length > 1))}</ul>
<form data-passkey="add-passkey" class="fields">
${renderField(texts.passkeyName, 'name', name)}
<div><button class="quiet">${texts.addPasskey}</button></div>
</form>
${account.email && renderEmail(page, account.email)}
${!account.isOperator && renderCodesLeft(page, account.codes)}
${host !== null && renderProvider(page, host, account.isConnected)}
<h2>${texts.sessions}</h2>
<ul class="things">${sessions.map((each) => renderSession(page, each, each.id === sessionId))}</ul></section>
${mailed && stores.map((each) => renderMails(page, each, mailed.get(each.storeId)))}`
}

function renderPasskey(page: Page, passkey: Passkey, isRemovable: boolean): Html {
  const { id, name, createdAt, lastUsedAt } = passkey
  const { formFields, locale } = page
  const texts = page.texts.account
  const made = showMinute(locale, createdAt)
  const waits =
    passkey.isWaiting &&
    passkey.waitsUntil &&
    html`<small>${fill(texts.waits, { time: showMinute(locale, passkey.waitsUntil) })}</small>`
  const life = lastUsedAt
    ? fill(texts.madeAndUsed, { made, used: showMinute(locale, lastUsedAt) })
    : fill(texts.made, { made })
  const remove = html`<form method="post" action="/passkeys/remove" data-confirm="passkey.remove">${formFields}
${renderHidden('passkeyId', id)}<button class="quiet">${texts.remove}</button></form>`
  return html`<li><p>${name}<small>${life}</small>${waits}</p>${isRemovable && remove}</li>`
}

/** Whoever has an address replaces it. Nobody removes one: security news goes there. */
function renderEmail({ formFields, locale, texts }: Page, { current, waiting, mayAsk }: Email): Html {
  const { account } = texts
  const now =
    current === null ? account.emailNone : fill(account.emailNow, { email: html`<bdi>${current}</bdi>` })
  const waits =
    waiting &&
    fill(account.emailWaits, {
      email: html`<bdi>${waiting.email}</bdi>`,
      time: showMinute(locale, waiting.expiresAt),
    })
  const field = { type: 'email', required: true, maxlength: 254, autocomplete: 'email', dir: 'ltr' }
  const form = html`<form method="post" action="/account/email" class="fields" data-confirm="email.change">${formFields}
${renderField(account.emailNew, 'email', field, account.emailHow)}
<div><button class="quiet">${account.emailAsk}</button></div></form>`
  return html`<h2 id="email">${account.email}</h2>
<p>${now}</p>
${waits && html`<p role="status">${waits}</p>`}
${mayAsk ? form : html`<p class="soft">${account.emailLater}</p>`}`
}

/** What the link in a mail leads to. Its button confirms the address. */
export function renderEmailLink({ texts, formFields }: Page, name: string, email: string): Html {
  const { title, about, button, back } = texts.emailLink
  const parts = { email: html`<bdi>${email}</bdi>`, name: html`<bdi>${name}</bdi>` }
  return html`<h1>${title}</h1><p>${fill(about, parts)}</p>
<form method="post">${formFields}<button>${button}</button></form>
<p><a href="/account">${back}</a></p>`
}

function renderCodesLeft({ formFields, locale, texts }: Page, codes: CodesLeft | null): Html {
  const { account } = texts
  const left =
    codes === null
      ? account.codesNone
      : fill(account.codesLeft, {
          count: `${codes.count}`,
          all: `${codesPerSet}`,
          time: showMinute(locale, codes.madeAt),
        })
  const button = codes === null ? account.codesMake : account.codesAgain
  return html`<h2 id="codes">${account.codes}</h2>
<p class="soft">${account.codesAbout} ${codes !== null && account.codesReplace}</p>
<ul class="things"><li><p>${left}</p>
<form method="post" action="/codes" data-confirm="codes.make">${formFields}<button class="quiet">${
    button
  }</button></form></li></ul>`
}

/** The sheet to print. */
export function renderCodes(page: Page, memberName: string, codes: readonly string[]): Html {
  const { ctx, locale, now, texts } = page
  const { codes: said, signIn } = texts
  const site = html`<bdi>${ctx.config.consoleUrl}</bdi>`
  const text = lines(codes.join('\n'))
  return html`<h1>${said.title}</h1>
<p class="note">${said.about}</p>
<section class="codes"><h2>${fill(said.of, { name: html`<bdi>${memberName}</bdi>` })}</h2>
<p class="soft">${fill(said.where, { site, time: showMinute(locale, now) })}</p>
<ol>${codes.map((code) => html`<li><code>${code}</code></li>`)}</ol>
<p class="soft">${fill(said.use, { lost: signIn.lost })}</p></section>
<form><button type="button" data-print>${said.print}</button></form>
<form><button type="button" class="quiet" data-copy="${text}" data-done="${texts.frame.copied}">${
    said.copy
  }</button></form>
<p><a href="/account">${said.back}</a></p>`
}

function renderProvider({ formFields, texts }: Page, host: string, isConnected: boolean): Html {
  const { provider, connected, notConnected, connect, disconnect } = texts.account
  const form = isConnected
    ? html`<form method="post" action="/oidc/disconnect" data-confirm="identity.remove">${formFields}
<button class="quiet">${disconnect}</button></form>`
    : html`<form data-passkey="connect"><button class="quiet">${connect}</button></form>`
  return html`<h2>${provider}</h2>
<ul class="things"><li><p>${host}<small>${isConnected ? connected : notConnected}</small></p>${form}</li></ul>`
}

/** What a member is mailed about payments, and the alerts that an owner can turn off. Security news cannot be turned off. */
function renderMails(page: Page, store: Membership, chosen: ChosenMails | undefined): Html | null {
  if (!chosen || !mayAct(store.role, 'payments:read')) return null
  const texts = page.texts.account
  const payments = paymentMails.map((each) =>
    renderChoice('payments', each, each === chosen.payments, texts.paymentMails[each]),
  )
  const boxes = alertKinds.map((kind) => renderCheck(kind, texts.alerts[kind], !chosen.muted.includes(kind)))
  const alerts = html`<fieldset><legend>${texts.alsoMailed}</legend><div class="stack">${boxes}</div></fieldset>`
  return html`<section class="pane"><h2>${fill(texts.mails, { store: store.storeName })}</h2>
<form class="fields" method="post" action="/account/alerts" data-confirm="alerts.choose">${page.formFields}
${renderHidden('storeId', store.storeId)}
<fieldset><legend>${texts.mailedPayments}</legend>${payments}</fieldset>
${store.role === 'owner' && alerts}
<div><button class="quiet">${texts.saveMails}</button></div></form></section>`
}

/** What a link in a mail leads to, before and after its button is pressed. */
export function renderStop({ texts, formFields }: Page, isStopped: boolean): Html {
  const { title, about, button, stopped, account } = texts.stopMails
  const after = fill(stopped, { account: html`<a href="/account">${account}</a>` })
  const before = html`<p>${about}</p><form method="post">${formFields}<button>${button}</button></form>`
  return html`<h1>${title}</h1>${isStopped ? html`<p role="status">${after}</p>` : before}`
}

function renderSession(page: Page, session: ListedSession, isThis: boolean): Html {
  const { formFields, locale } = page
  const texts = page.texts.account
  const { id, browser, address, createdAt, seenAt, uses } = session
  const [since, seen] = [showMinute(locale, createdAt), showMinute(locale, seenAt)]
  const elsewhere = uses.filter((use) => use.browser !== browser || use.address !== address)
  const name = html`${describeBrowser(browser, page.texts)}${isThis && html` <strong>${texts.here}</strong>`}`
  const life = html`<small>${fill(texts.session, { address, since, seen })}</small>`
  const end = html`<form method="post" action="/sessions/end">${formFields}${renderHidden('sessionId', id)}
<button class="quiet">${texts.end}</button></form>`
  return html`<li><p>${name}${life}${elsewhere.map((use) => renderUse(page, use))}</p>${!isThis && end}</li>`
}

function renderUse({ texts, locale }: Page, { browser, address, at }: SessionUse): Html {
  const parts = { browser: describeBrowser(browser, texts), address, time: showMinute(locale, at) }
  return html`<small>${fill(texts.account.usedFrom, parts)}</small>`
}
