import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import type { Membership } from '../../../members/member.ts'
import { Refusal } from '../../../members/refusal.ts'
import { mayAct } from '../../../members/rights.ts'
import { Problem } from '../../../problems.ts'
import { type Html, html } from '../../page/html.ts'
import { formField } from '../form-field.ts'
import { type Reader, readerOf, showExactTime, showTime } from '../formats.ts'
import { type Texts, textsOf } from '../texts/choose.ts'
import { forStore, giveFormToken, storeOf } from '../visitor.ts'

/** What every part of these screens needs. */
export type Screen = {
  readonly ctx: Context
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly store: Membership
  /** `/stores/…/developers` */
  readonly base: string
  readonly texts: Texts['developers']
  readonly reader: Reader
  /** The form's token, and the store. */
  readonly form: Html
  readonly may: Readonly<Record<'keys' | 'webhooks' | 'resend', boolean>>
}

export function openScreen(ctx: Context, request: FastifyRequest, reply: FastifyReply): Screen {
  const store = storeOf(request)
  const { storeId, role } = store
  return {
    ctx: forStore(ctx, storeId),
    ...{ request, reply, store },
    base: `/stores/${storeId}/developers`,
    texts: textsOf(request).developers,
    reader: readerOf(request),
    form: html`${formField(giveFormToken(ctx, request, reply))}<input type="hidden" name="storeId" value="${storeId}">`,
    may: {
      keys: mayAct(role, 'keys:write'),
      webhooks: mayAct(role, 'webhooks:write'),
      resend: mayAct(role, 'webhooks:resend'),
    },
  }
}

export function renderHead({ base, texts }: Screen, current: 'keys' | 'deliveries' | 'events'): Html {
  const paths = { keys: '', deliveries: '/deliveries', events: '/events' }
  const tabs = (['keys', 'deliveries', 'events'] as const).map(
    (tab) =>
      html`<a href="${base}${paths[tab]}"${tab === current && html` aria-current="page"`}>${texts.tabs[tab]}</a>`,
  )
  return html`<div class="head plain"><h1>${texts.title}</h1><nav class="tabs" aria-label="${texts.parts}">${tabs}</nav></div>`
}

/** The head of something below one of the tabs. */
export function renderSubhead({ texts }: Screen, title: Html | string, above: string, label?: string): Html {
  return html`<div class="head plain"><div><p><a href="${above}">${label ?? texts.back}</a></p><h1>${title}</h1></div></div>`
}

export function at({ reader, ctx }: Screen, time: Date | string): Html {
  return showTime(reader, new Date(time), ctx.now())
}

export function exactly({ reader }: Screen, time: Date | string): Html {
  return showExactTime(reader, new Date(time))
}

/** Text of several lines, such as JSON or an answer: everything in it stays text. */
export function renderText(text: string): Html {
  const lines = text.split('\n').map((line, i) => html`${i > 0 && { html: '\n' }}${line}`)
  return html`<pre tabindex="0"><code>${lines}</code></pre>`
}

/** Enough of a URL to recognise it: without https://, and shortened in the middle. */
export function showUrl(url: string): Html {
  const text = url.replace(/^https:\/\//, '')
  const short = text.length > 48 ? `${text.slice(0, 30)}…${text.slice(-15)}` : text
  return html`<bdi title="${url}">${short}</bdi>`
}

/** A select of a filter. */
export function renderSelect(
  name: string,
  label: string,
  chosen: string,
  options: readonly (readonly [value: string, text: string])[],
): Html {
  return html`<select name="${name}" aria-label="${label}">${options.map(
    ([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`,
  )}</select>`
}

/** One value of the address, as text; what is too long for anything that we look for is nothing. */
export function asked({ request }: Screen, name: string): string {
  const value = (request.query as Readonly<Record<string, unknown>>)[name]
  return typeof value === 'string' && value.length <= 100 ? value.trim() : ''
}

/** A path with the parameters that are not empty. */
export function withQuery(path: string, parameters: Readonly<Record<string, string | null>>): string {
  const filled = Object.entries(parameters).filter(([, value]) => value !== null && value !== '')
  const query = new URLSearchParams(filled as [string, string][]).toString()
  return query === '' ? path : `${path}?${query}`
}

/** Says in the member's language what the API says to programs. */
export async function inWords<Result>(request: FastifyRequest, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const problems: Readonly<Record<string, string>> = textsOf(request).developers.problems
    const pointer = /^\/\w+/.exec(error.extras.errors?.[0]?.pointer ?? '')?.[0] ?? ''
    const detail = problems[error.code] ?? problems[pointer]
    if (error.code === 'not_found') throw new Refusal('not_found')
    if (detail === undefined && error.code !== 'invalid_request') throw error
    throw new Refusal('invalid', { ...(detail !== undefined && { detail }), cause: error })
  }
}
