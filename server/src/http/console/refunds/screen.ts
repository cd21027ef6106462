import type { Refund as Wire } from '@farthing/sdk'
import type { FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import type { Refund } from '../../../refunds/refund.ts'
import { type Html, html } from '../../page/html.ts'
import type { Reader } from '../formats.ts'
import { storeOf } from '../visitor.ts'

/** What every part of a refund's screen needs. */
export type One = {
  readonly ctx: Context
  readonly request: FastifyRequest
  readonly refund: Refund
  /** Whether the member may say who gets the money, or that it was paid: see turn.ts. */
  readonly isTheirs: boolean
  readonly wire: Wire
  /** Why what somebody tried was refused. */
  readonly problem: string | null
  readonly reader: Reader
  readonly formField: Html
}

export function pathOf({ request, wire }: One): string {
  return `/stores/${storeOf(request).storeId}/refunds/${wire.id}`
}

/** What every form of the screen sends: its token, the store and the refund. */
export function hiddenOf({ request, wire, formField }: One): Html {
  const { storeId } = storeOf(request)
  return html`${formField}<input type="hidden" name="storeId" value="${storeId}"><input type="hidden" name="refundId" value="${wire.id}">`
}
