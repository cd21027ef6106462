import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { Refusal } from '../../../members/refusal.ts'
import { mayAct } from '../../../members/rights.ts'
import { readStepsDone, type StepsDone } from '../../../stores/step-rows.ts'
import { networksFor, walletSegment } from '../../../stores/store.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { fieldsOf, textOf } from '../fields.ts'
import { formField } from '../form-field.ts'
import { showFours } from '../formats.ts'
import { screensOf } from '../frame/screens.ts'
import { renderApiLine } from '../parts.ts'
import { textsOf } from '../texts/choose.ts'
import { forStore, giveFormToken, storeOf } from '../visitor.ts'
import { all, isDone, rememberSkipped, type Step, skippedBy, steps } from './steps.ts'

const path = '/stores/:storeId/start'
const config = { config: { right: 'wallets:read' } } as const

/** What a store needs before it can be paid, ticked off by what has happened. */
export function mountStart(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, config, async (request, reply) => {
    const { storeId, mode } = storeOf(request)
    const texts = textsOf(request).start
    const done = await readStepsDone(forStore(ctx, storeId).db, storeId)
    const skipped = skippedBy(request)
    const left = steps.filter((step) => !isDone(done, step) && !skipped.includes(step))
    const doneCount = steps.filter((step) => isDone(done, step)).length
    const field = formField(giveFormToken(ctx, request, reply))
    const rendered = steps.map((step) =>
      renderStep(ctx, request, step, done, stateOf(step, done, left, skipped), field),
    )
    const segment = walletSegment(networksFor(ctx, mode))
    return sendPage(ctx, request, reply, {
      screen: 'start',
      title: texts.title,
      isLive: true,
      main: html`<div class="head"><div><h1>${texts.title}</h1><p class="soft">${left.length === 0 ? texts.finished : texts.about}</p></div><p><strong>${fill(texts.count, { done: `${doneCount}`, all: `${steps.length}` })}</strong></p></div>
<div class="split"><section class="pane"><ol class="line">${rendered}</ol>${left.length > 0 && html`<form method="post" action="/stores/${storeId}/start/skip">${field}<input type="hidden" name="step" value="${all}"><button class="plainly soft">${texts.skipAll}</button></form>`}</section>
<section class="facts stack"><h2>${mode === 'test' ? texts.testTitle : texts.liveTitle}</h2><p>${mode === 'test' ? texts.testText : texts.liveText}</p></section></div>
${renderApiLine(
  { ctx, texts: textsOf(request) },
  {
    method: 'POST',
    path: `/stores/${storeId}/wallets/${segment}`,
    body: { walletAddress: done.wallet ?? '<your address>', custodialType: 'NON_CUSTODIAL' },
  },
)}`,
    })
  })

  scope.post(`${path}/skip`, config, async (request, reply) => {
    const store = storeOf(request)
    const step = textOf(fieldsOf(request), 'step')
    if (step !== all && !steps.some((each) => each === step)) throw new Refusal('invalid')
    rememberSkipped(request, reply, store, [...skippedBy(request), step])
    return reply.code(303).header('location', `/stores/${store.storeId}/start`).send()
  })
}

type State = 'done' | 'next' | 'skipped' | 'later'

function stateOf(step: Step, done: StepsDone, left: readonly Step[], skipped: readonly string[]): State {
  if (isDone(done, step)) return 'done'
  if (step === left[0] && !skipped.includes(all)) return 'next'
  return skipped.includes(step) || skipped.includes(all) ? 'skipped' : 'later'
}

function renderStep(
  ctx: Context,
  request: FastifyRequest,
  step: Step,
  { wallet }: StepsDone,
  state: State,
  field: Html,
): Html {
  const texts = textsOf(request).start
  const { storeId } = storeOf(request)
  const { title, text, doneText, action } = texts.steps[step]
  const place = { done: '', next: 'coming', skipped: 'wait', later: 'wait' }[state]
  const chip = {
    done: html`<span class="chip good">${texts.done}</span>`,
    next: html`<span class="chip busy">${texts.next}</span>`,
    skipped: html`<span class="chip">${texts.skipped}</span>`,
    later: null,
  }[state]
  const href = hrefOf(ctx, request, step)
  const skip =
    (state === 'next' || state === 'later') &&
    html`<form method="post" action="/stores/${storeId}/start/skip">${field}<input type="hidden" name="step" value="${step}"><button class="plainly soft" aria-label="${texts.skip}: ${title}">${texts.skip}</button></form>`
  return html`<li${place !== '' && html` class="${place}"`}><p class="row apart"><strong>${title}</strong>${chip}</p>
<p class="soft">${state === 'done' ? doneText : text}</p>${step === 'wallet' && wallet !== null && showFours(wallet)}
${state !== 'done' && html`<div class="row do">${href !== null && html`<a class="button${state !== 'next' && ' quiet'}" href="${href}">${action}</a>`}${skip}</div>`}</li>
`
}

/** Where it is done; null if the member's role cannot do it. */
function hrefOf({ config: { baseUrl } }: Context, request: FastifyRequest, step: Step): string | null {
  const store = storeOf(request)
  const base = `/stores/${store.storeId}`
  const hasDevelopers = screensOf(store).some(({ id }) => id === 'developers')
  if (step === 'wallet') return `${base}/wallets`
  if (step === 'payment') return mayAct(store.role, 'checkouts:write') ? `${base}/new` : null
  if (step === 'key')
    return !hasDevelopers
      ? `${baseUrl}/docs/keys`
      : mayAct(store.role, 'keys:write')
        ? `${base}/developers/keys/new`
        : null
  if (!hasDevelopers) return `${baseUrl}/docs/webhooks`
  return mayAct(store.role, 'webhooks:write') ? `${base}/developers/endpoints/new` : null
}
