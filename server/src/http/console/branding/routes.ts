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
import { type Screen, storeRoutes } from '../screen.ts'
import { hasText, languageOf } from '../texts/choose.ts'
import { type PreviewState, previewStates, renderPreview } from './preview.ts'
import { type BrandingFault, renderBranding } from './view.ts'

const path = '/branding'
const read = 'branding:read'
/** Larger uploads are rejected unread. A logo that is slightly too large is read, so that its form keeps its values. */
const uploadBytesMax = 262_144
/** A larger one, and one whose size is not declared, is answered before it has arrived: the browser may show no answer. */
const discardedBytesMax = 33_554_432
/** More fields than any form of ours has. */
const partsMax = 20

/** How buyers see the store: its name, logo, colour and contact, with the payment page as it is. */
export function mountBranding(outer: FastifyInstance, ctx: Context): void {
  // Only here may a form carry a file.
  void outer.register(async (scope) => {
    const { get, post } = storeRoutes(scope, ctx)
    scope.addContentTypeParser(
      'multipart/form-data',
      { parseAs: 'buffer', bodyLimit: uploadBytesMax },
      async (request: FastifyRequest, body: Buffer) => await readForm(request, body),
    )

    get(path, read, (screen) => send(screen, null, null))

    get(`${path}/preview`, read, async (screen) => {
      const { request, reply } = screen
      const store = await readOwn(screen)
      const language = chooseLanguage(languageOf(request).tag, undefined)
      const { headers, text } = renderPreview(ctx, store, stateOf(request), language, ctx.now())
      return reply.headers({ ...headers, 'cross-origin-resource-policy': 'same-origin' }).send(text)
    })

    post(
      path,
      'branding:write',
      async (screen) => {
        const { storeId } = screen
        const { logo } = fieldsOf(screen.request)
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
      { errorHandler: tooLarge },
    )
  })
}

/** The fields of a form with a file: texts as they are, files as bytes. Each name counts once. */
async function readForm({ headers }: FastifyRequest, body: Buffer): Promise<Record<string, string | Buffer>> {
  const type = headers['content-type'] ?? ''
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } })
    .formData()
    .catch((cause: unknown) => {
      throw new Refusal('invalid', { cause })
    })
  const names = [...form.keys()]
  if (names.length > partsMax || new Set(names).size < names.length) throw new Refusal('invalid')
  const fields = [...form].map(async ([name, value]) => {
    return [name, typeof value === 'string' ? value : Buffer.from(await value.arrayBuffer())] as const
  })
  return Object.fromEntries(await Promise.all(fields))
}

/**
 * The upload was not read, so the visitor is not known here. It is discarded first, because a browser that is still
 * sending when the connection ends shows an error of its own in place of the answer.
 */
function tooLarge(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  const { storeId } = request.params as { storeId: string }
  const { code } = error as { code?: unknown }
  if (code !== 'FST_ERR_CTP_BODY_TOO_LARGE' || !isId('st', storeId)) throw error
  const answer = () =>
    void reply.code(303).header('location', `/stores/${storeId}/branding?said=large`).send()
  const declared = Number.parseInt(request.headers['content-length'] ?? '', 10)
  if (declared <= discardedBytesMax) request.raw.once('end', answer).resume()
  else answer()
}

/** The change that the form's fields ask for, without the logo's file. */
function changeOf({ field }: Screen): UpdateStore {
  const text = (name: string) => field(name).trim()
  const orNull = (value: string) => (value === '' ? null : value)
  return {
    name: text('name'),
    // Choosing another colour counts as wanting it, with or without the tick.
    accentColor:
      text('hasColor') === 'yes' || !['', text('accentColor')].includes(text('shownColor'))
        ? text('accentColor')
        : null,
    supportEmail: orNull(text('supportEmail')),
    supportUrl: orNull(text('supportUrl')),
    legalName: orNull(text('legalName')),
    legalAddress: orNull(text('legalAddress').replaceAll('\r\n', '\n')),
    taxId: orNull(text('taxId')),
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

async function send(
  screen: Screen,
  entered: UpdateStore | null,
  fault: BrandingFault | null,
): Promise<FastifyReply> {
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
  const { name, accentColor, supportEmail, supportUrl, legalName, legalAddress, taxId, ...rest } = wire
  const { timeZone, reportCurrency } = rest
  const line = {
    method: 'PATCH',
    path: `/stores/${wire.id}`,
    body: {
      ...{ name, accentColor, supportEmail, supportUrl, legalName, legalAddress, taxId },
      ...{ timeZone, reportCurrency },
    },
  }
  return screen.send({
    screen: 'branding',
    title: screen.texts.branding.title,
    hasFrames: true,
    ...(fault && { status: 422 }),
    main: html`${main}${renderApiLine(screen, line)}`,
  })
}

/** What a store's setting can hold as a data URL, in bytes of the image. */
const logoBytesMax = 9_000

const kinds: readonly { readonly type: string; readonly isIt: (bytes: Buffer) => boolean }[] = [
  { type: 'image/png', isIt: (bytes) => bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex')) },
  { type: 'image/jpeg', isIt: (bytes) => bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex')) },
  {
    type: 'image/webp',
    isIt: (bytes) => bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP',
  },
]

/** An uploaded image as a data URL, judged by its bytes and not by its name; or its fault. */
function readLogo(bytes: Buffer): { readonly url: string } | { readonly fault: 'large' | 'image' } {
  const kind = kinds.find(({ isIt }) => isIt(bytes))
  if (!kind) return { fault: 'image' }
  if (bytes.length > logoBytesMax) return { fault: 'large' }
  return { url: `data:${kind.type};base64,${bytes.toString('base64')}` }
}
