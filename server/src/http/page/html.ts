/** Text that is already markup. Everything else in a page is escaped. */
export type Html = { readonly html: string }

type Part = Html | string | number | null | false | readonly Part[]

/** html`<p>${anything}</p>`: strings are cleaned and escaped, Html is inserted as it is, null and false are omitted. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: texts.map((text, i) => text + render(parts[i] ?? null)).join('') }
}

function render(part: Part): string {
  if (part === null || part === false) return ''
  if (typeof part === 'string') return escapeHtml(plain(part))
  if (typeof part === 'number') return String(part)
  return 'html' in part ? part.html : part.map(render).join('')
}

/** Replaces the {names} in a text. */
export function fill(text: string, parts: Readonly<Record<string, Html | string>> = {}): Html {
  const pieces = text.split(/\{(\w+)\}/)
  return { html: pieces.map((piece, i) => render(i % 2 === 0 ? piece : (parts[piece] ?? null))).join('') }
}

/** A text of several lines, which stay: in a `pre`, or in an attribute to be copied from. */
export function lines(text: string): Html {
  return { html: text.split('\n').map(render).join('\n') }
}

/** Removes control and bidi characters and replaces lone surrogates, so that what is shown is what was written. */
export function plain(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu, '')
}

/** JSON for a script element that holds data: nothing in it can close the element. */
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
