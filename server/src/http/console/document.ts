import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../context.ts'
import { openAssets } from '../page/assets.ts'
import { type Html, html } from '../page/html.ts'
import { contentPolicy } from '../page/policy.ts'
import { languageOf, languages, rememberLanguage } from './languages/choose.ts'
import { giveFormToken } from './visitor.ts'

/** Sends a page of the console, with the form token of this browser. */
export function sendPage(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  page: {
    readonly title: string
    readonly main: Html
    readonly status?: number
    /** A small card in the middle: for pages with one thing to do. */
    readonly isAlone?: boolean
  },
): FastifyReply {
  const { style, script } = openAssets('console')
  const language = languageOf(request)
  const { texts } = language
  const formToken = giveFormToken(ctx, request, reply)
  rememberLanguage(request, reply)
  const member = request.visitor.session?.member
  // The answer to a form has no address of its own to come back to.
  const here = request.method === 'GET' && !request.is404 ? '' : '/'
  const document = html`<!doctype html>
<html lang="${language.tag}" dir="${language.direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex,nofollow">
<meta name="color-scheme" content="light dark">
<meta name="form-token" content="${formToken}">
<title>${page.title}</title>
<link rel="icon" href="data:,">
${{ html: `<style>${style}</style>` }}
<script type="module" src="/assets/${script.name}" integrity="${script.integrity}"></script>
</head>
<body${Object.entries(texts.script).map(([name, text]) => html` data-${name}="${text}"`)}>
${
  member
    ? html`<header><a href="/">${member.name}</a><form method="post" action="/sign-out">${formField(formToken)}<button class="quiet">${texts.signOut}</button></form></header>`
    : null
}
<main${page.isAlone ? html` class="alone"` : null}>
${page.main}
<p id="alert" class="notice" role="alert" hidden></p>
</main>
<footer>
<nav aria-label="${texts.languages}">${languages.map(({ tag, name }) => html`<a href="${here}?lang=${tag}" lang="${tag}" hreflang="${tag}"${tag === language.tag && html` aria-current="true"`}>${name}</a>`)}</nav>
</footer>
</body>
</html>
`
  return reply
    .code(page.status ?? 200)
    .headers(headersFor(ctx, style))
    .send(document.html)
}

/** The form token of a page that is being made, as a hidden field. */
export function formField(formToken: string): Html {
  return html`<input type="hidden" name="formToken" value="${formToken}">`
}

/** The payment page's policy, without its pictures from elsewhere and with a referrer for our own forms. */
function headersFor({ config }: Context, style: string): Readonly<Record<string, string>> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': contentPolicy([style], 'data:'),
    'integrity-policy': 'blocked-destinations=(script)',
    'x-frame-options': 'DENY',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy':
      'camera=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-write=(self), publickey-credentials-get=(self), publickey-credentials-create=(self)',
    ...(config.consoleUrl.startsWith('https:') && { 'strict-transport-security': 'max-age=63072000' }),
    vary: 'cookie, accept-language',
  }
}
