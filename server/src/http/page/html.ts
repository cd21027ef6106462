/** Text that is markup already. Anything else that enters a page is escaped. */
export type Html = { readonly html: string }

type Part = Html | string | number | null | false | readonly Part[]

/** html`<p>${anything}</p>`: strings are stripped and escaped, Html is taken as it is, null and false are nothing. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: texts.map((text, i) => text + render(parts[i] ?? null)).join('') }
}

function render(part: Part): string {
  if (part === null || part === false) return ''
  if (typeof part === 'string') return escapeHtml(plain(part))
  if (typeof part === 'number') return String(part)
  return 'html' in part ? part.html : part.map(render).join('')
}

/** Fills the {names} of a text with markup. */
export function fill(text: string, parts: Readonly<Record<string, Html | string>> = {}): Html {
  const pieces = text.split(/\{(\w+)\}/)
  return { html: pieces.map((piece, i) => render(i % 2 === 0 ? piece : (parts[piece] ?? null))).join('') }
}

/** Controls, what reorders text, and halves of characters: what is shown must be what was written. */
export function plain(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu, '')
}

/** JSON for a script element that is data: nothing in it can end the element. */
export function json(value: unknown): Html {
  return {
    html: JSON.stringify(value).replace(
      /[<>&\u2028\u2029]/g,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
    ),
  }
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`)
}
