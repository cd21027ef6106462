import type { Context } from '../../../context.ts'
import type { Family } from '../../../networks.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { renderField } from '../parts.ts'
import { type Page, withQuery } from '../screen.ts'
import type { Texts } from '../texts/choose.ts'
import { renderAsking } from '../wallets/parts.ts'

type SignIn = {
  /** Of the identity provider; null without one. */
  readonly host: string | null
  readonly takesSignUps: boolean
  /** Where signing in leads. */
  readonly to: string
}

export function renderSignIn(
  { ctx, texts: { signIn: texts } }: Page,
  { host, takesSignUps, to }: SignIn,
): Html {
  const through = host !== null && fill(texts.through, { host })
  const provider = withQuery('/oidc', { to: to === '/' ? null : to })
  return html`<h1>${texts.heading}</h1>
<p class="soft">${texts.about}</p>
<form data-passkey="sign-in"><button>${texts.button}</button></form>
${through && html`<p><a class="button quiet" href="${provider}">${through}</a></p>`}
<noscript><p class="note">${texts.needsScript}</p></noscript>
${renderLost(ctx, texts)}
${takesSignUps && html`<p><a href="/sign-up">${texts.signUp}</a></p>`}`
}

/** Every way back in, the quickest first. */
function renderLost({ config }: Context, texts: Texts['signIn']): Html {
  const { operatorContact: contact } = config
  const href = contact.includes('@') && !contact.includes('/') ? `mailto:${contact}` : contact
  const link = html`<a href="/recover">${texts.lostCodeLink}</a>`
  const operator =
    contact === ''
      ? texts.lostNobody
      : fill(texts.lostOperator, { contact: html`<a href="${href}">${contact}</a>` })
  return html`<details id="lost"><summary>${texts.lost}</summary>
<ul><li>${texts.lostOther}</li>
<li>${fill(texts.lostCode, { link })}</li>
<li>${texts.lostOwner}</li>
<li>${operator}</li></ul></details>`
}

/** Where a code from paper is entered. */
export function renderRecover({ formFields, texts: { recover: texts, signIn } }: Page): Html {
  const code = { required: true, maxlength: 60, autocomplete: 'off', autocapitalize: 'characters' }
  return html`<h1>${texts.title}</h1>
<p class="soft">${texts.about}</p>
<form data-passkey="recover" class="fields">
${renderField(texts.code, 'code', { ...code, spellcheck: 'false', dir: 'ltr' })}
<div><button>${texts.button}</button></div>
</form>
<noscript><p class="note">${signIn.needsScript}</p></noscript>
<p class="soft">${texts.after}</p>
<details id="refuse"><summary>${texts.notYou}</summary>
<p class="soft">${texts.notYouAbout}</p>
<form method="post" action="/recover/refuse" class="fields">${formFields}
${renderField(texts.unused, 'code', { ...code, spellcheck: 'false', dir: 'ltr' })}
<div><button class="quiet">${texts.refuse}</button></div>
</form></details>
<p><a href="/sign-in">${texts.back}</a></p>`
}

/** After a code has refused the passkey that another code of the sheet made. */
export function renderRefused({ texts: { recover: texts } }: Page): Html {
  return html`<h1>${texts.refused}</h1>
<p>${texts.refusedAbout}</p>
<p><a href="/sign-in">${texts.back}</a></p>`
}

/** The script writes into it what the invitation says. A member who is signed in can also join as they are. */
export function renderEnrol({ texts: { enrol: texts } }: Page, memberName: string | null): Html {
  const store = html`<span data-invited="store"></span>`
  const name = html`<strong data-invited="name"></strong>`
  const role = html`<strong data-invited="role"></strong>`
  const join = memberName !== null && fill(texts.joinAs, { name: memberName })
  return html`<div data-shown-for="opening">
<h1>${texts.title}</h1>
<p class="soft">${fill(texts.hasPasskey, { signIn: html`<a href="/sign-in">${texts.signIn}</a>` })}</p>
</div>
<div data-shown-for="joining" hidden>
<h1>${fill(texts.join, { store })}</h1>
<p>${fill(texts.invited, { name, role })}</p>
<p class="soft">${texts.noPassword}</p>
</div>
<div data-shown-for="recovery" hidden>
<h1>${fill(texts.recover, { store })}</h1>
<p>${fill(texts.recoverAbout, { name })}</p>
</div>
<form data-passkey="enrol" hidden><button>${texts.button}</button></form>
${
  join &&
  html`<form data-passkey="join" data-shown-for="joining" hidden><button class="quiet">${join}</button></form>`
}
<noscript><p class="note">${texts.needsScript}</p></noscript>`
}

type SignUp = {
  readonly hasTest: boolean
  /** What happens to a live store; null if there are none here. */
  readonly live: 'open' | 'approval' | null
  readonly families: readonly Family[]
}

export function renderSignUp({ texts: all }: Page, { hasTest, live, families }: SignUp): Html {
  const { signUp: texts, wallets } = all
  const { take, unnamed, troubles, asking, none } = wallets.enter
  const values = { into: 'walletAddress', label: take, unnamed, ...troubles }
  const text = { required: true, maxlength: 100 }
  const address = {
    ...{ ...text, autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', dir: 'ltr' },
    // Narrow enough that all of it can be seen and compared.
    class: 'address',
  }
  return html`<h1>${texts.heading}</h1>
<p class="soft">${hasTest && texts.test} ${live && texts.about[live]}</p>
<form data-passkey="sign-up" class="fields">
${renderField(texts.storeName, 'storeName', { ...text, autocomplete: 'organization' })}
${renderField(texts.name, 'name', { ...text, autocomplete: 'name' })}
${renderField(texts.wallet, 'walletAddress', { ...address, 'aria-describedby': 'wallet-hint' })}
<p class="soft" id="wallet-hint">${texts.walletHint}</p>
${renderAsking('address', families, values, { asking, none })}
<p class="soft">${texts.noPassword}</p>
<div><button>${texts.button}</button></div>
</form>
<noscript><p class="note">${texts.needsScript}</p></noscript>
<p class="soft">${fill(texts.hasPasskey, { signIn: html`<a href="/sign-in">${texts.signIn}</a>` })}</p>`
}
