import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { localeOf, showCount, showExactTime } from '../formats.ts'
import { renderCommand } from '../parts.ts'
import { textsOf } from '../texts/choose.ts'
import type { Deployment, Finding } from './deployment.ts'

/** A node has 5 seconds for each of a few questions. Whoever waits longer than this has gone. */
const timeoutMs = 25_000
/** Pressing the button again within this shows the same: nodes are asked no more often, whoever presses. */
const freshMs = 5_000

type Examined = { readonly at: Date; readonly findings: readonly Finding[] | null }

/** What `doctor` says, on demand. Reading changes nothing, so it is a GET; without `run` nothing is asked. */
export function mountDoctor(scope: FastifyInstance, ctx: Context, deployment: Deployment): void {
  let last: { readonly startedAt: number; readonly result: Promise<Examined> } | null = null
  let isRunning = false

  function examine(): Promise<Examined> {
    const startedAt = ctx.now().getTime()
    if (last && (isRunning || startedAt - last.startedAt < freshMs)) return last.result
    isRunning = true
    const whole = deployment.examine().finally(() => {
      isRunning = false
    })
    const result = withLimit(whole).then((findings) => ({ at: ctx.now(), findings }))
    last = { startedAt, result }
    return result
  }

  scope.get('/operator/doctor', async (request, reply) => {
    const isAsked = (request.query as Readonly<Record<string, unknown>>).run !== undefined
    const examined = isAsked ? await examine() : null
    const texts = textsOf(request).health.doctor
    return await sendPage(ctx, request, reply, {
      screen: 'doctor',
      title: texts.title,
      main: html`<div class="head plain"><div><h1>${texts.title}</h1><p class="soft words">${texts.about}</p></div>
<form action="/operator/doctor"><input type="hidden" name="run" value="yes"><button>${
        examined ? texts.again : texts.run
      }</button></form></div>
${examined && renderExamined(request, examined)}
${renderCommand(textsOf(request), 'farthing-admin doctor')}`,
    })
  })
}

/** Null if it takes too long. What it still asks then ends by itself. */
async function withLimit(findings: Promise<readonly Finding[]>): Promise<readonly Finding[] | null> {
  const { promise, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(resolve, timeoutMs, null)
  return await Promise.race([findings, promise]).finally(() => clearTimeout(timer))
}

function renderExamined(request: FastifyRequest, { at, findings }: Examined): Html {
  const texts = textsOf(request).health.doctor
  const locale = localeOf(request)
  if (findings === null) return html`<section class="pane"><p class="note">${texts.tooLong}</p></section>`
  const wrong = findings.filter(({ fix }) => fix !== null)
  const summary =
    wrong.length === 0
      ? html`<p class="note good">${texts.well}</p>`
      : html`<p class="note">${fill(texts.wrong, { count: showCount(locale, wrong.length) })}</p>`
  return html`<section class="pane stack">${summary}<p class="soft">${fill(texts.took, {
    time: showExactTime(locale, at),
  })} ${texts.elsewhere}</p>
<ul class="things" lang="en">${[...wrong, ...findings.filter(({ fix }) => fix === null)].map(
    ({ what, says, fix }) =>
      html`<li><div><p><b>${what}</b> ${says}</p>${fix !== null && html`<small>${fix}</small>`}</div>
<span class="chip ${fix === null ? 'good' : 'bad'}">${fix === null ? texts.fine : texts.bad}</span></li>`,
  )}</ul></section>`
}
