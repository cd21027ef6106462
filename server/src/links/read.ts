import type { LinkStatus, Page, Link as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { isId, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { type Link, linkToWire, statusOf } from './link.ts'
import { findLink, type LinkRow, linkColumns, toLink } from './rows.ts'

export async function readLink(ctx: Context, storeId: StoreId, linkId: string): Promise<Wire> {
  const link = isId('lnk', linkId) ? await findLink(ctx.db, storeId, linkId) : null
  if (!link) throw new Problem('not_found', 'No such link.')
  return linkToWire(ctx, link)
}

type LinkQuery = {
  readonly status?: LinkStatus | null
  readonly invoiceNumber?: string | null
  readonly cursor?: string | null
  readonly limit: number
}

/** Filters by status read this many links at a time, so that a rare status does not read all of them. */
const windowRows = 500

/** Newest first. With a status, a page can be short although another follows. */
export async function listLinks(ctx: Context, storeId: StoreId, query: LinkQuery): Promise<Page<Wire>> {
  const { links, nextCursor } = await pageLinks(ctx, storeId, query)
  return { data: links.map((link) => linkToWire(ctx, link)), nextCursor }
}

async function pageLinks(
  ctx: Context,
  storeId: StoreId,
  { status = null, invoiceNumber = null, cursor = null, limit }: LinkQuery,
): Promise<{ readonly links: Link[]; readonly nextCursor: string | null }> {
  if (cursor !== null && !isId('lnk', cursor))
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  const rows = await ctx.db.query<LinkRow>(
    `select ${linkColumns} from links l where l.store_id = $1 and l.id < $2
       and ${invoiceNumber === null ? '$5::text is null' : 'l.invoice_number = $5'} order by l.id desc
     limit case when $4::text is null then $3 else ${windowRows} end`,
    [storeId, cursor ?? 'lnk~', limit + 1, status, invoiceNumber],
  )
  const found = rows.map(toLink).filter((link) => status === null || statusOf(link) === status)
  const links = found.slice(0, limit)
  const isCut = status !== null && rows.length === windowRows
  const last = found.length > limit ? links.at(-1) : isCut ? rows.at(-1) : null
  return { links, nextCursor: last?.id ?? null }
}
