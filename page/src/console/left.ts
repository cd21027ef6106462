/**
 * What somebody typed into a form that was not sent, because their session had ended. It is kept in this tab until the
 * same member is back on the same page. Passwords and codes are not kept.
 */
const key = 'left'
/** More than any form of the console holds: a form's body is at most 16 KiB. */
const lengthMax = 16_384
/** Whoever comes back later begins again. */
const keptMs = 60 * 60_000

type Pair = readonly [name: string, value: string]

type Left = {
  readonly memberId: string
  readonly path: string
  readonly at: number
  /** Says which of the page's forms it was. */
  readonly form: string
  readonly fields: readonly Pair[]
  /** The member was sent to sign in, so the form was not taken. */
  readonly isOut?: true
}

const here = () => location.pathname + location.search
const memberId = document.body.dataset.member ?? ''

/** Before a form is sent. */
export function keepForm(form: HTMLFormElement): void {
  if (memberId === '') return
  sessionStorage.removeItem(key)
  if (form.method !== 'post' || form.getAttribute('action') === '/sign-out') return
  const fields = fieldsOf(form).flatMap((field): Pair[] =>
    isBox(field) && !field.checked ? [] : [[field.name, field.value]],
  )
  save({ memberId, path: here(), at: Date.now(), form: nameOf(form), fields })
}

/** Leads to signing in, and back to this page. */
export function leaveToSignIn(): void {
  location.assign(`/sign-in?to=${encodeURIComponent(here())}`)
}

/** When a page has loaded. Says whether it filled a form. */
export function giveBack(): HTMLFormElement | null {
  const left = read()
  if (!left) return null
  const isSignIn = document.querySelector('form[data-passkey="sign-in"]') !== null
  const isOut = new URLSearchParams(location.search).get('to') === left.path
  if (isSignIn && isOut) save({ ...left, isOut: true })
  // Not yet signed in: on the page that asks for it, or on the way to it.
  if (memberId === '') return null
  sessionStorage.removeItem(key)
  const isTheirs = left.memberId === memberId && left.path === here() && Date.now() - left.at < keptMs
  if (!isTheirs || !left.isOut) return null
  const form = [...document.forms].find((each) => nameOf(each) === left.form)
  if (!form) return null
  fill(form, left.fields)
  return form
}

function fill(form: HTMLFormElement, fields: readonly Pair[]): void {
  for (const field of fieldsOf(form)) {
    const kept = fields.filter(([name]) => name === field.name)
    if (isBox(field)) field.checked = kept.some(([, value]) => value === field.value)
    else if (kept[0]) field.value = kept[0][1]
  }
  const fold = form.closest('details')
  if (fold) fold.open = true
}

type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement

function fieldsOf(form: HTMLFormElement): Field[] {
  return [...form.querySelectorAll<Field>('input, select, textarea')].filter(
    ({ name, type, autocomplete }) =>
      name !== '' && !/^(hidden|password|file|submit)$/.test(type) && autocomplete !== 'one-time-code',
  )
}

function isBox(field: Field): field is HTMLInputElement {
  return field.type === 'checkbox' || field.type === 'radio'
}

/** Where the form goes and what it is about: one page can have the same form for each of its rows. */
function nameOf(form: HTMLFormElement): string {
  const hidden = [...form.querySelectorAll<HTMLInputElement>('input[type="hidden"]')]
    .filter(({ name }) => name !== 'formToken' && name !== 'touch' && name !== 'key')
    .map(({ name, value }) => `${name}=${value}`)
  return [form.getAttribute('action') ?? form.dataset.passkey ?? '', ...hidden].join('&')
}

function save(left: Left): void {
  const text = JSON.stringify(left)
  if (text.length <= lengthMax) sessionStorage.setItem(key, text)
}

function read(): Left | null {
  const text = sessionStorage.getItem(key)
  return text === null ? null : JSON.parse(text)
}
