/**
 * The console's script: passkeys, wallets, copying, and screens that update themselves. Everything else works without
 * it. It writes text only, never markup.
 */

import { giveBack, keepForm, leaveToSignIn } from './left.ts'
import { watchLive } from './live.ts'
import { shrinkLogo } from './logo.ts'
import { post, Refused, SignedOut } from './post.ts'
import { askWallet, offerWallets } from './wallets.ts'

/** Sentences in the page's language. */
const { unsupported = '', unused = '', known = '', failed = '', back = '' } = document.body.dataset

const handlers: Readonly<Record<string, (form: HTMLFormElement) => Promise<void>>> = {
  'sign-in': signIn,
  'sign-up': signUp,
  enrol,
  recover,
  join,
  connect,
  'add-passkey': addPasskey,
}

document.addEventListener('submit', (event) => {
  const form = event.target as HTMLFormElement
  keepForm(form)
  const handle = handlers[form.dataset.passkey ?? ''] ?? (form.dataset.confirm ? confirmAndSubmit : undefined)
  if (!handle) return
  event.preventDefault()
  void attempt(form, handle)
})

document.addEventListener('click', (event) => {
  const button = (event.target as Element).closest<HTMLElement>('button[data-copy]')
  if (!button?.dataset.copy) return
  void navigator.clipboard.writeText(button.dataset.copy).then(() => {
    button.textContent = button.dataset.done ?? button.textContent
  })
})

/** Only where the browser has a sheet for it, as phones have. */
function offerShare(): void {
  if (!('share' in navigator)) return
  for (const button of document.querySelectorAll<HTMLElement>('button[data-share]')) button.hidden = false
}

document.addEventListener('click', (event) => {
  const button = (event.target as Element).closest<HTMLElement>('button[data-share], button[data-print]')
  if (!button) return
  const { share: url, title } = button.dataset
  if (url === undefined) return window.print()
  // Whoever puts the sheet away has changed their mind.
  navigator.share({ url, ...(title !== undefined && { title }) }).catch(() => {})
})

document.addEventListener('click', (event) => {
  const button = (event.target as Element).closest<HTMLElement>('button[data-wallet]')
  const place = button?.closest<HTMLElement>('[data-sign]')
  if (button && place) void attempt(place, () => askWallet(button))
})

document.addEventListener('change', (event) => {
  const field = event.target
  if (field instanceof HTMLInputElement && field.type === 'file') void makeSmall(field)
})

/** Nothing is sent before the picture is small: the server hangs up on one that is too large. */
async function makeSmall(field: HTMLInputElement): Promise<void> {
  const buttons = [...(field.form?.querySelectorAll('button') ?? [])]
  for (const button of buttons) button.disabled = true
  await shrinkLogo(field)
  for (const button of buttons) button.disabled = false
}

function offer(): void {
  offerWallets()
  offerShare()
}

watchLive(offer)
offer()
restore()

/** What a member had typed before they were signed out. */
function restore(): void {
  const form = giveBack()
  if (!form) return
  const note = document.createElement('p')
  note.className = 'note'
  note.setAttribute('role', 'status')
  note.textContent = back
  form.prepend(note)
  form.querySelector<HTMLElement>('input:not([type="hidden"]), select, textarea')?.focus()
}

/** The token of an invitation. The address bar and the history forget it at once. */
const invitation = location.hash.slice(1)
const enrolment = document.querySelector<HTMLFormElement>('form[data-passkey="enrol"]')
if (enrolment) {
  history.replaceState(null, '', location.pathname)
  void attempt(enrolment, showInvitation)
}

/** Runs `handle` with the form's buttons disabled, and shows the reason if it fails. */
async function attempt<Place extends HTMLElement>(form: Place, handle: (form: Place) => Promise<unknown>) {
  const buttons = [...form.querySelectorAll('button')]
  const alert =
    form.querySelector<HTMLElement>('[role="alert"]') ?? document.querySelector<HTMLElement>('#alert')
  if (alert) alert.hidden = true
  for (const button of buttons) button.disabled = true
  try {
    if ((await handle(form)) === 'stays') for (const button of buttons) button.disabled = false
  } catch (error) {
    for (const button of buttons) button.disabled = false
    if (error instanceof SignedOut) return leaveToSignIn()
    if (!alert) throw error
    alert.textContent = describe(error)
    alert.hidden = false
  }
}

function describe(error: unknown): string {
  if (error instanceof Refused) return error.message
  if (error instanceof DOMException && error.name === 'NotAllowedError') return unused
  if (error instanceof DOMException && error.name === 'InvalidStateError') return known
  return failed
}

async function signIn(): Promise<void> {
  const { options } = await post('/sign-in/options', {})
  const left = new URLSearchParams(location.search).get('to')
  const { to } = await post('/sign-in', { answer: await touch(options), to: left })
  location.assign(to)
}

async function signUp(form: HTMLFormElement): Promise<void> {
  const applicant = Object.fromEntries(new FormData(form))
  const { memberId, options } = await post('/sign-up/options', applicant)
  const { to } = await post('/sign-up', { ...applicant, memberId, answer: await create(options) })
  location.assign(to)
}

type Invited = { name: string; store: string; role: string; isRecovery: boolean; options: unknown }

async function showInvitation(form: HTMLFormElement): Promise<void> {
  const invited: Invited = await post('/enrol/options', { invitation })
  for (const part of ['name', 'store', 'role'] as const) {
    for (const place of document.querySelectorAll(`[data-invited="${part}"]`))
      place.textContent = invited[part]
  }
  for (const each of document.querySelectorAll<HTMLElement>('[data-shown-for]'))
    each.hidden = each.dataset.shownFor !== (invited.isRecovery ? 'recovery' : 'joining')
  form.hidden = false
  for (const button of form.querySelectorAll('button')) button.disabled = false
}

async function enrol(): Promise<void> {
  // The challenge in the options that came with the page may have expired.
  const { options } = await post('/enrol/options', { invitation })
  const { to } = await post('/enrol', { invitation, answer: await create(options) })
  location.assign(to)
}

async function recover(form: HTMLFormElement): Promise<void> {
  const code = new FormData(form).get('code')
  const { options } = await post('/recover/options', { code })
  const { to } = await post('/recover', { code, answer: await create(options) })
  location.assign(to)
}

async function join(): Promise<void> {
  const confirmed = await confirmation('invitation.accept', { invitation })
  const { to } = await post('/enrol/join', { invitation, touch: confirmed })
  location.assign(to)
}

async function connect(): Promise<void> {
  const { to } = await post('/oidc/connect', { touch: await confirmation('identity.add', {}) })
  location.assign(to)
}

async function addPasskey(form: HTMLFormElement): Promise<void> {
  const confirmed = await confirmation('passkey.add', {})
  const { options } = await post('/passkeys/options', {})
  const name = new FormData(form).get('name')
  const { to } = await post('/passkeys', { name, touch: confirmed, answer: await create(options) })
  location.assign(to)
}

/** The passkey confirms the values that the form sends. */
async function confirmAndSubmit(form: HTMLFormElement): Promise<void> {
  const values = Object.fromEntries([...new FormData(form)].filter(([name]) => name !== 'formToken'))
  const input = document.createElement('input')
  input.type = 'hidden'
  input.name = 'touch'
  input.value = JSON.stringify(await confirmation(form.dataset.confirm ?? '', values))
  form.append(input)
  form.submit()
}

async function confirmation(action: string, values: object): Promise<unknown> {
  const { options } = await post('/confirm', { action, values })
  return await touch(options)
}

async function touch(options: unknown): Promise<unknown> {
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) throw new Refused(unsupported)
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(
    options as PublicKeyCredentialRequestOptionsJSON,
  )
  return toJson(await navigator.credentials.get({ publicKey }))
}

async function create(options: unknown): Promise<unknown> {
  if (!window.PublicKeyCredential?.parseCreationOptionsFromJSON) throw new Refused(unsupported)
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
    options as PublicKeyCredentialCreationOptionsJSON,
  )
  return toJson(await navigator.credentials.create({ publicKey }))
}

function toJson(credential: Credential | null): unknown {
  return (credential as PublicKeyCredential).toJSON()
}
