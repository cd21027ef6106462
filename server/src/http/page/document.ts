import type { Assets } from './assets.ts'
import { type Html, html } from './html.ts'
import { languages } from './languages/choose.ts'
import type { Language } from './languages/language.ts'
import { contentPolicy } from './policy.ts'

/** A whole page and the headers that it must be sent with. */
export type Document = { readonly status: number; readonly headers: Headers; readonly text: string }

type Headers = Readonly<Record<string, string>>

/** Where the payment pages are served. */
export type Place = {
  /** CHECKOUT_PAGE_URL. */
  readonly url: string
  /** Its path, without a trailing slash. */
  readonly path: string
  readonly assets: Assets
}

export function renderDocument(
  { url, path, assets }: Place,
  language: Language,
  page: {
    readonly status: number
    readonly title: string
    readonly accentColor: string | null
    readonly main: Html
    /** The query of this page in another language. */
    readonly languageLinks: (tag: string) => string
  },
): Document {
  const styles = [assets.style, ...(page.accentColor === null ? [] : [accentStyle(page.accentColor)])]
  const document = html`<!doctype html>
<html lang="${language.tag}" dir="${language.direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex,nofollow">
<meta name="color-scheme" content="light dark">
<title>${page.title}</title>
<link rel="icon" href="data:,">
${styles.map((style) => ({ html: `<style>${style}</style>` }))}
<script type="module" src="${path}/assets/${assets.script.name}" integrity="${assets.script.integrity}"></script>
</head>
<body>
${page.main}
<footer>
<nav aria-label="${language.texts.languages}">${languages.map(({ tag, name }) => html`<a href="${page.languageLinks(tag)}" lang="${tag}" hreflang="${tag}"${tag === language.tag && html` aria-current="true"`}>${name}</a>`)}</nav>
</footer>
</body>
</html>
`
  return { status: page.status, headers: headersFor(url, styles), text: document.html }
}

/**
 * Nothing from other hosts, no inline script, no framing, no markup created by script. Images may be data URLs because
 * wallets announce their icons that way. The page's style and the store's colour are inline, each allowed by the hash of
 * its exact text.
 */
function headersFor(url: string, styles: readonly string[]): Headers {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': contentPolicy(styles, "'self' data:"),
    'integrity-policy': 'blocked-destinations=(script)',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    // Wallets may open windows of their own.
    'cross-origin-opener-policy': 'same-origin-allow-popups',
    'permissions-policy':
      'camera=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-write=(self)',
    ...(url.startsWith('https:') && { 'strict-transport-security': 'max-age=63072000; includeSubDomains' }),
    vary: 'accept, accept-language, accept-encoding',
  }
}

/** The store's colour, and black or white text on it, whichever has more contrast: one always exceeds 4.5. */
function accentStyle(color: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((i) => {
    const channel = Number.parseInt(color.slice(i, i + 2), 16) / 255
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
  })
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
  const isDark = 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05
  return `:root{--accent:${color};--on-accent:${isDark ? '#fff' : '#000'}}`
}
