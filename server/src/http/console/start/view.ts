import type { Store } from '../../../stores/store.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showFours } from '../formats.ts'
import { screensOf } from '../frame/screens.ts'
import { renderChip, renderHidden } from '../parts.ts'
import type { Screen } from '../screen.ts'
import { renderStanding } from '../standing.ts'
import { all, isDone, type StartDone, type StartStep, stepsFor } from './steps.ts'

export function renderStart(screen: Screen, store: Store, done: StartDone, skipped: readonly string[]): Html {
  const texts = screen.texts.start
  const isTest = screen.store.mode === 'test'
  const steps = stepsFor(done)
  const left = steps.filter((step) => !isDone(done, step) && !skipped.includes(step))
  const doneCount = steps.filter((step) => isDone(done, step)).length
  const count = fill(texts.count, { done: `${doneCount}`, all: `${steps.length}` })
  const line = steps.map((step) => {
    const opens =
      step === 'proof' && store.standing === 'unproven' ? screen.texts.standing.text.unproven : null
    return renderOne(screen, step, done, stateOf(step, done, left, skipped), opens)
  })
  const about = left.length === 0 ? texts.finished : texts.about
  return html`<div class="head"><div><h1>${texts.title}</h1><p class="soft">${about}</p></div>
<p><strong>${count}</strong></p></div>
${store.standing !== 'unproven' && renderStanding(screen, store)}
<div class="split"><section class="pane"><ol class="line">${line}</ol>${
    left.length > 0 && renderSkip(screen, all, html`<button class="plainly soft">${texts.skipAll}</button>`)
  }</section>
<section class="facts stack"><h2>${isTest ? texts.testTitle : texts.liveTitle}</h2>
<p>${isTest ? texts.testText : texts.liveText}</p></section></div>
`
}

function renderSkip({ base, formFields }: Screen, step: string, button: Html): Html {
  const hidden = html`${formFields}${renderHidden('step', step)}`
  return html`<form method="post" action="${base}/start/skip">${hidden}${button}</form>`
}

type State = 'done' | 'next' | 'skipped' | 'later'

function stateOf(
  step: StartStep,
  done: StartDone,
  left: readonly StartStep[],
  skipped: readonly string[],
): State {
  if (isDone(done, step)) return 'done'
  if (step === left[0] && !skipped.includes(all)) return 'next'
  return skipped.includes(step) || skipped.includes(all) ? 'skipped' : 'later'
}

function renderOne(
  screen: Screen,
  step: StartStep,
  { wallet }: StartDone,
  state: State,
  /** A sentence about what the store may do once the step is done, added until then; null if there is none. */
  opens: string | null,
): Html {
  const texts = screen.texts.start
  const { title, text, doneText, action } = texts.steps[step]
  const place = { done: '', next: 'coming', skipped: 'wait', later: 'wait' }[state]
  const chip = {
    done: renderChip(texts.done, 'good'),
    next: renderChip(texts.next, 'busy'),
    skipped: renderChip(texts.skipped),
    later: null,
  }[state]
  const href = hrefOf(screen, step, wallet !== null)
  const go =
    href !== null && html`<a class="button${state !== 'next' && ' quiet'}" href="${href}">${action}</a>`
  const label = `${texts.skip}: ${title}`
  const button = html`<button class="plainly soft" aria-label="${label}">${texts.skip}</button>`
  const skip = (state === 'next' || state === 'later') && renderSkip(screen, step, button)
  return html`<li${place !== '' && html` class="${place}"`}><p class="row apart"><strong>${title}</strong>${chip}</p>
<p class="soft">${state === 'done' ? doneText : html`${text} ${opens}`}</p>${
    step === 'wallet' && wallet !== null && showFours(wallet)
  }
${state !== 'done' && html`<div class="row do">${go}${skip}</div>`}</li>
`
}

/** The screen for this step; null if the member's role can't do it. */
function hrefOf({ ctx, base, store, may }: Screen, step: StartStep, hasWallet: boolean): string | null {
  const docs = `${ctx.config.baseUrl}/docs`
  const hasDevelopers = screensOf(store).some(({ id }) => id === 'developers')
  if (step === 'wallet' || step === 'proof') {
    if (!may('wallets:write')) return null
    return step === 'wallet' && !hasWallet ? `${base}/wallets/new` : `${base}/wallets`
  }
  if (step === 'spare') return '/account'
  if (step === 'payment') return may('checkouts:write') ? `${base}/new` : null
  if (step === 'key') {
    if (!hasDevelopers) return `${docs}/keys`
    return may('keys:write') ? `${base}/developers/keys/new` : null
  }
  if (!hasDevelopers) return `${docs}/webhooks`
  return may('webhooks:write') ? `${base}/developers/endpoints/new` : null
}
