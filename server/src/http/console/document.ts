import type { FastifyReply, FastifyRequest } from 'fastify'
import { countHeld } from '../../checkouts/payments/hold-decision.ts'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'
import { countUndecided } from '../../payments/credits/store-payments.ts'
import { sendCompressed } from '../page/accept.ts'
import { openAssets } from '../page/assets.ts'
import { contentPolicy } from '../page/document.ts'
import { type Html, html } from '../page/html.ts'
import { iconLink, mark } from '../page/mark.ts'
import { renderWaiting } from './account/waiting.ts'
import { theme as chosenTheme, rememberChoices, renderChoices } from './frame/choices.ts'
import type { ScreenId } from './frame/screens.ts'
import { countMax, type Frame, renderBand, renderSide } from './frame/side.ts'
import { hasStepsLeft } from './start/steps.ts'
import { languageOf, rememberLanguage } from './texts/choose.ts'
import { forStore, giveFormToken, sessionOf } from './visitor.ts'
import { renderNews } from './wallets/news.ts'

/** The content of a console page, and how it is shown. */
export type Content = {
  readonly title: string
  readonly main: Html
  readonly status?: number
  /** A small card in the middle: for pages with one thing to do. */
  readonly isAlone?: boolean
  /** The entry of the navigation that it belongs to. */
  readonly screen?: ScreenId
  /** It is loaded again when something happens in its store. */
  readonly isLive?: boolean
  /** It is also loaded again after so many seconds: something is about to happen that nothing reports. */
  readonly againSeconds?: number | null
  /** It shows pages of ours in frames. */
  readonly hasFrames?: boolean
}

/** The form token of this browser, as every form that posts has it. */
export function formField(formToken: string): Html {
  return html`<input type="hidden" name="formToken" value="${formToken}">`
}

/** Sends a page of the console, with the form token of this browser. */
export async function sendPage(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  page: Content,
): Promise<FastifyReply> {
  const { style, script } = openAssets('console')
  const language = languageOf(request)
  const { texts } = language
  const formToken = giveFormToken(ctx, request, reply)
  rememberLanguage(request, reply)
  rememberChoices(request, reply)
  const { store, session } = request.visitor
  const member = session?.member
  const field = formField(formToken)
  const frame = page.isAlone ? null : await readFrame(ctx, request, reply, page, field)
  // The wallets screen shows the same news in detail.
  const isToldAnyway = page.isAlone || page.screen === 'wallets'
  const news = isToldAnyway ? null : await renderNews(ctx, request, field)
  const waiting = frame && (await renderWaiting(ctx, request, field))
  const theme = chosenTheme.of(request) ?? 'auto'
  const kind = [frame === null && 'alone', store?.mode === 'test' && 'test'].filter(Boolean).join(' ')
  const skip = html`<a class="skip unseen" href="#main">${texts.frame.skip}</a>`
  const live =
    page.isLive === true &&
    store &&
    html` data-live="/stores/${store.storeId}/live" data-sequence="${String(store.sequence)}"${
      page.againSeconds != null && html` data-again="${page.againSeconds}"`
    }`
  const who = member ? html` data-member="${member.id}"` : null
  const document = html`<!doctype html>
<html lang="${language.tag}" dir="${language.direction}"${theme !== 'auto' && html` data-theme="${theme}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex,nofollow">
<meta name="color-scheme" content="light dark">
<meta name="form-token" content="${formToken}">
<title>${page.title}${(frame?.store && html` · ${frame.store.storeName}`) ?? null}</title>
${iconLink}
${{ html: `<style>${style}</style>` }}
<script type="module" src="/assets/${script.name}" integrity="${script.integrity}"></script>
</head>
<body class="${kind}"${who}${Object.entries(texts.script).map(([name, text]) => html` data-${name}="${text}"`)}>
${
  frame
    ? html`${skip}${renderBand(request, frame)}${renderSide(request, frame)}`
    : html`<header class="brand">${mark}Farthing</header>`
}
<main id="main" tabindex="-1"${live}>
${waiting}${news}${page.main}
<p id="alert" class="note" role="alert" hidden></p>
</main>
${frame === null && html`<footer>${renderChoices(request)}</footer>`}
</body>
</html>
`
  reply.code(page.status ?? 200).headers(headersFor(ctx, style, page.hasFrames ?? false))
  return sendCompressed(request, reply, document.html)
}

async function readFrame(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  page: Content,
  field: Html,
): Promise<Frame> {
  const { stores, store } = request.visitor
  const { member } = sessionOf(request)
  // The answer to a form is left at once.
  const shown = request.method === 'GET' ? store : null
  const [undecided, stepsLeft] = await Promise.all([
    shown && countLeft(forStore(ctx, shown.storeId).db, shown.storeId),
    shown && hasStepsLeft(ctx, request, reply, shown),
  ])
  return {
    screen: page.screen ?? null,
    stores,
    store,
    isOperator: member.isOperator,
    undecided,
    hasStepsLeft: stepsLeft ?? false,
    memberName: member.name,
    formField: field,
  }
}

/** Payments that wait for a decision, without those that a member has decided about a moment ago. */
async function countLeft(db: Database, storeId: StoreId): Promise<number> {
  const held = await countHeld(db, storeId)
  const count = await countUndecided(db, storeId, countMax + 1 + held)
  return Math.max(0, count - held)
}

/** The payment page's policy, but without pictures from elsewhere, and with a referrer for our own forms. */
function headersFor(
  { config }: Context,
  style: string,
  hasFrames: boolean,
): Readonly<Record<string, string>> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': contentPolicy([style], 'data:', { hasFrames }),
    'integrity-policy': 'blocked-destinations=(script)',
    'x-frame-options': 'DENY',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy':
      'camera=(), geolocation=(), microphone=(), payment=(), usb=(), clipboard-write=(self), publickey-credentials-get=(self), publickey-credentials-create=(self)',
    ...(config.consoleUrl.startsWith('https:') && { 'strict-transport-security': 'max-age=63072000' }),
    vary: 'cookie, accept-language, accept-encoding',
  }
}
