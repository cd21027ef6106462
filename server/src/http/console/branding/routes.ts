import type { UpdateStore } from '@farthing/sdk'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { isId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import { Problem } from '../../../problems.ts'
import { readStore } from '../../../stores/rows.ts'
import { type Store, storeToWire } from '../../../stores/store.ts'
import { updateStore } from '../../../stores/update.ts'
import { html } from '../../page/html.ts'
import { chooseLanguage } from '../../page/languages/choose.ts'
import { fieldsOf } from '../fields.ts'
import { renderApiLine } from '../parts.ts'
import { openScreen, type Screen } from '../screen.ts'
import { hasText, languageOf } from '../texts/choose.ts'
import { readLogo } from './logo.ts'
import { parseMultipart } from './multipart.ts'
import { type PreviewState, previewStates, renderPreview } from './preview.ts'
import { type Fault, renderBranding } from './view.ts'

const path = '/stores/:storeId/branding'
const read = { config: { right: 'branding:read' } } as const
/** A photo from a phone is larger, and is told so; a logo that is too large by mistake still arrives and is told so too. */
const uploadBytesMax = 262_144

/** How buyers see the store: its name, logo, colour and contact, with the payment page as it is. */
export function mountBranding(outer: FastifyInstance, ctx: Context): void {
  // Only here may a form carry a file.
  void outer.register(async (scope) => {
    scope.addContentTypeParser(
      'multipart/form-data',
      { parseAs: 'buffer', bodyLimit: uploadBytesMax },
      async (request: FastifyRequest, body: Buffer) =>
        parseMultipart(request.headers['content-type'] ?? '', body),
    )

    scope.get(path, read, (request, reply) => send(openScreen(ctx, request, reply), null, null))

    scope.get(`${path}/preview`, read, async (request, reply) => {
      const store = await readOwn(openScreen(ctx, request, reply))
      const language = chooseLanguage(languageOf(request).tag, undefined)
      const { headers, text } = renderPreview(ctx, store, stateOf(request), language, ctx.now())
      return reply.headers({ ...headers, 'cross-origin-resource-policy': 'same-origin' }).send(text)
    })

    scope.post(
      path,
      { config: { right: 'branding:write' }, errorHandler: tooLarge },
      async (request, reply) => {
        const screen = openScreen(ctx, request, reply)
        const { storeId } = screen
        const { logo } = fieldsOf(request)
        const image = Buffer.isBuffer(logo) && logo.length > 0 ? readLogo(logo) : null
        const change = changeOf(screen)
        if (image && 'fault' in image) return await send(screen, change, image.fault)
        const wanted = image ? { ...change, logoUrl: image.url } : change
        if (wanted.accentColor !== null && !/^#[0-9a-f]{6}$/i.test(wanted.accentColor ?? ''))
          return await send(screen, change, 'accentColor')
        try {
          await screen.act((acting) => updateStore(acting.ctx, storeId, acting.actor, wanted, ctx.now()))
        } catch (error) {
          if (!(error instanceof Problem) || error.code !== 'invalid_request') throw error
          const [{ pointer } = { pointer: '' }] = error.extras.errors ?? []
          const fault = pointer.slice(1)
          if (!hasText(screen.texts.branding.faults, fault)) throw error
          return await send(screen, change, fault)
        }
        return screen.go('/branding?said=saved')
      },
    )
  })
}

/** Nothing of what was sent was read, not even who sent it. */
function tooLarge(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  const { storeId } = request.params as { storeId: string }
  const { code } = error as { code?: unknown }
  if (code !== 'FST_ERR_CTP_BODY_TOO_LARGE' || !isId('st', storeId)) throw error
  void reply.code(303).header('location', `/stores/${storeId}/branding?said=large`).send()
}

/** What the form says, all of it. A file comes on top. */
function changeOf({ field }: Screen): UpdateStore {
  const text = (name: string) => field(name).trim()
  const orNull = (value: string) => (value === '' ? null : value)
  return {
    name: text('name'),
    // Whoever chooses another colour wants it, with or without the tick.
    accentColor:
      text('hasColor') === 'yes' || !['', text('accentColor')].includes(text('shownColor'))
        ? text('accentColor')
        : null,
    supportEmail: orNull(text('supportEmail')),
    supportUrl: orNull(text('supportUrl')),
    timeZone: text('timeZone'),
    reportCurrency: text('reportCurrency'),
    ...(text('removeLogo') === 'yes' && { logoUrl: null }),
  }
}

async function readOwn({ ctx, storeId }: Screen): Promise<Store> {
  const store = await readStore(ctx.db, storeId)
  if (!store) throw new Refusal('not_found')
  return store
}

function stateOf({ query }: FastifyRequest): PreviewState {
  const { state } = (query ?? {}) as { state?: unknown }
  return previewStates.find((each) => each === state) ?? 'open'
}

async function send(screen: Screen, entered: UpdateStore | null, fault: Fault | null): Promise<FastifyReply> {
  const store = await readOwn(screen)
  const said = screen.asked('said')
  const wire = storeToWire(store)
  const main = renderBranding(screen, {
    store: { ...wire, ...entered },
    logoUrl: wire.logoUrl,
    fault: fault ?? (said === 'large' ? 'large' : null),
    isSaved: said === 'saved' && entered === null,
    state: stateOf(screen.request),
  })
  const { name, accentColor, supportEmail, supportUrl, timeZone, reportCurrency } = wire
  const line = {
    method: 'PATCH',
    path: `/stores/${wire.id}`,
    body: { name, accentColor, supportEmail, supportUrl, timeZone, reportCurrency },
  }
  return screen.send({
    screen: 'branding',
    title: screen.texts.branding.title,
    hasFrames: true,
    ...(fault && { status: 422 }),
    main: html`${main}${renderApiLine(screen, line)}`,
  })
}
