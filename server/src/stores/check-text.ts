import type { Mode } from '../networks.ts'
import type { Mistake } from '../problems.ts'

/** Control characters and characters that reorder text: people must see the text as it was written. */
const hidden = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u

export function checkText(pointer: string, text: string, bytesMax: number): Mistake[] {
  const bytes = Buffer.byteLength(text)
  if (bytes < 1 || bytes > bytesMax)
    return [{ pointer, code: 'length', detail: `Must be 1 to ${bytesMax} bytes of UTF-8.` }]
  if (!text.isWellFormed() || hidden.test(text)) {
    return [
      {
        pointer,
        code: 'characters',
        detail: 'Must not contain control characters or characters that change the direction of text.',
      },
    ]
  }
  return []
}

/** Name, street, town, country, tax number, and one to spare. */
const addressLinesMax = 6
const addressLineBytesMax = 100

/** Lines of text, none of them empty. */
export function checkPostalAddress(pointer: string, text: string): Mistake[] {
  const lines = text.split('\n')
  if (lines.length > addressLinesMax)
    return [{ pointer, code: 'length', detail: `Must have at most ${addressLinesMax} lines.` }]
  return lines.flatMap((line) => checkText(pointer, line, addressLineBytesMax)).slice(0, 1)
}

/** An image as a data URL, so that a page can show it without asking another server. */
export const imageForm =
  /^data:(image\/(?:png|jpeg|webp|svg\+xml));base64,((?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/

/** https only; a test store may also use http to this machine, which cannot get a certificate. */
export function checkWebUrl(pointer: string, text: string, mode: Mode): Mistake[] {
  const mistake = (detail: string) => [{ pointer, code: 'url', detail }]
  // URL parsers strip whitespace and control characters, each in its own way: "java\tscript:" is javascript:. Without
  // its two slashes, "https:shop" is a host to one parser and, on an https page, a path to another.
  const isPlain = /^[a-z]+:\/\/[^/?#@]/i.test(text) && !/[\s\p{Cc}\\]/u.test(text) && text.isWellFormed()
  const url = isPlain ? URL.parse(text) : null
  if (!url) return mistake('Must be an absolute URL without spaces.')
  if (url.username !== '' || url.password !== '') return mistake('Must not contain a user name or password.')
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(url.hostname)
  if (url.protocol === 'https:' || (url.protocol === 'http:' && mode === 'test' && isLoopback)) return []
  return mistake(mode === 'test' ? 'Must use https, or http to localhost.' : 'Must use https.')
}

/** Narrower than the standard allows: it becomes a link, and every address that people use has this form. */
export const emailForm = /^[A-Za-z0-9.!#$&'*+/=^_{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+$/

export function checkEmail(pointer: string, text: string): Mistake[] {
  return emailForm.test(text)
    ? []
    : [{ pointer, code: 'email', detail: 'Must be an email address, such as help@shop.example.' }]
}

/** Enough for ids and references of other systems. Every event of the checkout contains them. */
export const metadataKeysMax = 20
const metadataKeyBytesMax = 40
export const metadataValueCharactersMax = 500
/** UTF-8 takes up to four bytes for a character. */
const valueBytesMax = 4 * metadataValueCharactersMax

/** The schema has already checked number, type and length of the values. */
export function checkMetadata(pointer: string, metadata: Readonly<Record<string, string>>): Mistake[] {
  return Object.entries(metadata).flatMap(([key, value]) => {
    const at = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    return [
      ...checkText(at, key, metadataKeyBytesMax).map((mistake) => ({
        ...mistake,
        detail: `The name: ${mistake.detail}`,
      })),
      ...(value === '' ? [] : checkText(at, value, valueBytesMax)),
    ]
  })
}
