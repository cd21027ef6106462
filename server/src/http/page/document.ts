import { createHash } from 'node:crypto'
import type { Assets } from './assets.ts'
import { type Html, html } from './html.ts'
import { languages } from './languages/choose.ts'
import type { Language } from './languages/language.ts'
import { iconLink } from './mark.ts'

/** A whole page and the headers that it must be sent with. */
export type Document = { readonly status: number; readonly headers: Headers; readonly text: string }

type Headers = Readonly<Record<string, string>>

/** Where the payment pages are served. */
export type PageHost = {
  /** CHECKOUT_PAGE_URL. */
  readonly url: string
  /** Its path, without a trailing slash. */
  readonly path: string
  readonly assets: Assets
  /** The script's URL names the cell, so that a proxy fetches the script from the cell that rendered the page. */
  readonly cell: string
  /** Set for a picture of the page in a frame of our own: it has no script, and nothing in it can be used. */
  readonly still?: {
    /** The logo as a data URL. */
    readonly logo: string | null
  }
}

export function renderDocument(
  { url, path, assets, cell, still }: PageHost,
  language: Language,
  page: {
    readonly status: number
    readonly title: string
    readonly accentColor: string | null
    readonly main: Html
    /** The query of this page in another language. */
    readonly languageLinks: (tag: string) => string
    /** Whether it works without our script, and has none. */
    readonly isStatic?: boolean
    /** The preview that messengers show for a link to this page. */
    readonly preview?: { readonly url: string; readonly site: string; readonly description: string }
  },
): Document {
  const { name, integrity } = assets.script
  const source = `${path}/assets/${name}?cell=${cell}`
  const script = html`<script type="module" src="${source}" integrity="${integrity}"></script>`
  const link = ({ tag, name }: Language) => {
    const current = tag === language.tag && html` aria-current="true"`
    return html`<a href="${page.languageLinks(tag)}" lang="${tag}" hreflang="${tag}"${current}>${name}</a>`
  }
  const styles = [assets.style, ...(page.accentColor === null ? [] : [accentStyle(page.accentColor)])]
  const document = html`<!doctype html>
<html lang="${language.tag}" dir="${language.direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex,nofollow">
<meta name="color-scheme" content="light dark">
<title>${page.title}</title>
${page.preview !== undefined && renderPreview(page.title, page.preview)}
${iconLink}
${styles.map((style) => ({ html: `<style>${style}</style>` }))}
${still === undefined && !page.isStatic && script}
</head>
<body${still !== undefined && html` inert`}>
${page.main}
<footer>
<nav aria-label="${language.texts.languages}">${languages.map(link)}</nav>
</footer>
</body>
</html>
`
  return { status: page.status, headers: headersFor(url, styles, still !== undefined), text: document.html }
}

/** Open Graph. */
function renderPreview(
  title: string,
  { url, site, description }: { readonly url: string; readonly site: string; readonly description: string },
): Html {
  const tags = { type: 'website', url, site_name: site, title, description }
  return html`${Object.entries(tags).map(
    ([name, content]) => html`<meta property="og:${name}" content="${content}">\n`,
  )}`
}

/**
 * Nothing from other hosts, no inline script, no framing, no markup created by script. Images may be data URLs because
 * wallets announce their icons that way. The page's style and the store's colour are inline, each allowed by the hash of
 * its exact text.
 */
function headersFor(url: string, styles: readonly string[], isStill: boolean): Headers {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': isStill ? stillPolicy(styles) : contentPolicy(styles, "'self' data:"),
    'integrity-policy': 'blocked-destinations=(script)',
    'x-frame-options': isStill ? 'SAMEORIGIN' : 'DENY',
    'referrer-policy': 'no-referrer',
    // Wallets may open windows of their own.
    'cross-origin-opener-policy': 'same-origin-allow-popups',
    'permissions-policy':
      'camera=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-write=(self)',
    ...(url.startsWith('https:') && { 'strict-transport-security': 'max-age=63072000; includeSubDomains' }),
    vary: 'accept, accept-language, accept-encoding',
  }
}

/** The store's colour, and a text colour that is readable on it. */
function accentStyle(color: string): string {
  return `:root{--accent:${color};--on-accent:${inkOn(color) === '#ffffff' ? '#fff' : '#000'}}`
}

/** The relative luminance of a colour such as #2b50d8, by WCAG 2. */
function luminanceOf(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((i) => {
    const channel = Number.parseInt(color.slice(i, i + 2), 16) / 255
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** From 1 (the same) to 21 (black on white). */
export function contrastOf(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminanceOf(one), luminanceOf(other)].toSorted((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

/** Black or white, whichever has more contrast on the colour: one always exceeds 4.5. */
export function inkOn(color: string): '#ffffff' | '#000000' {
  return contrastOf(color, '#ffffff') > contrastOf(color, '#000000') ? '#ffffff' : '#000000'
}

/**
 * What a page of ours may load: its own script, and the styles in it by their exact text. Nothing from other hosts, no
 * inline script, no frame around it.
 */
export function contentPolicy(
  styles: readonly string[],
  pictures: string,
  { hasFrames = false }: { readonly hasFrames?: boolean } = {},
): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${hashesOf(styles)}`,
    `img-src ${pictures}`,
    ...(hasFrames ? ["frame-src 'self'"] : []),
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

/** For a picture of a page in a frame of our own: only its styles and data. */
function stillPolicy(styles: readonly string[]): string {
  return [
    "default-src 'none'",
    `style-src ${hashesOf(styles)}`,
    'img-src data:',
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'self'",
    'sandbox',
  ].join('; ')
}

function hashesOf(styles: readonly string[]): string {
  return styles.map((style) => `'sha256-${createHash('sha256').update(style).digest('base64')}'`).join(' ')
}
