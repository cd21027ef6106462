import type * as Wire from '@farthing/sdk'
import Type, { type Static } from 'typebox'
import { requirePayable } from '../../checkouts/create.ts'
import { updateLink } from '../../checkouts/links/update.ts'
import { createLink } from '../../links/create.ts'
import { linesMax } from '../../links/invoice.ts'
import { listLinks, readLink } from '../../links/read.ts'
import { metadataKeysMax, metadataValueCharactersMax } from '../../stores/check-text.ts'
import { answer, limitDefault, type Route, readIdempotencyKey } from '../route.ts'
import { cursor, limit, nullable, object, of, pageOf, shape, timestamp } from './shapes.ts'

const linkStatuses = ['ACTIVE', 'PAID', 'CLOSED', 'ENDED'] as const

const decimal = (description: string, examples: string[]) =>
  Type.String({ maxLength: 30, description, examples })

export const InvoiceLine = shape<Wire.InvoiceLine>()({
  text: Type.String({ description: '1 to 200 bytes.' }),
  quantity: decimal('Above zero, with at most 6 decimals.', ['2']),
  unitAmount: decimal('For one, with at most 6 decimals.', ['12.50']),
  taxRate: decimal('In percent, from 0 to 100, with at most 3 decimals.', ['21']),
})

const invoiceFields = {
  number: Type.String({ description: 'Unique among the store’s invoices. 1 to 64 bytes.' }),
  dueDate: Type.Optional(
    Type.String({
      maxLength: 10,
      description: 'The invoice can be paid until the link’s until, even after this date.',
    }),
  ),
  lines: Type.Array(InvoiceLine, { minItems: 1, maxItems: linesMax }),
  taxIncluded: Type.Boolean({ description: 'Whether the unit amounts include tax.' }),
  buyerName: Type.Optional(Type.String({ description: '1 to 200 bytes.' })),
  buyerAddress: Type.Optional(Type.String({ description: 'Up to 6 lines of 100 bytes each.' })),
}

const sum = () => Type.String()

const Invoice = shape<Wire.Invoice>()(
  {
    ...invoiceFields,
    taxes: Type.Array(object({ taxRate: Type.String(), net: sum(), tax: sum(), gross: sum() }), {
      description:
        'One for each tax rate, lowest first. Each figure is rounded once, half up, to the currency’s smallest unit.',
    }),
    net: sum(),
    tax: sum(),
    gross: Type.String({ description: 'What is paid.' }),
  },
  { description: 'It never changes. Absent unless the link is an invoice.' },
)

const CreateInvoice = shape<Wire.CreateInvoice>()(invoiceFields)

export const Link = shape<Wire.Link>()({
  id: Type.String({ description: 'Begins with lnk_.' }),
  url: Type.String({ description: 'What to send to buyers. x402 clients can pay at this URL too.' }),
  kind: Type.Enum(['once', 'many'], {
    description:
      'once: one payment ends it, and all who open it share one checkout. many: each buyer gets a checkout.',
  }),
  status: Type.Enum([...linkStatuses]),
  title: Type.String(),
  priceAmount: nullable(Type.String({ description: 'Null if the buyer chooses the amount.' })),
  priceCurrency: Type.String({ description: 'ISO 4217 code in upper case.' }),
  minAmount: Type.Optional(Type.String({ description: 'Absent if the price is fixed.' })),
  maxAmount: Type.Optional(Type.String({ description: 'Absent if the price is fixed.' })),
  until: Type.String({ format: 'date-time', description: 'The link cannot be paid after this time.' }),
  revision: Type.Integer({ description: 'Increases with every change of what buyers see.' }),
  checkoutId: nullable(
    Type.String({
      description: 'Of a link that is paid once: its newest checkout. Null if nobody has wanted to pay yet.',
    }),
  ),
  createdAt: timestamp(),
  description: Type.Optional(Type.String({ description: 'Absent if none was given.' })),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Absent if none was given.' }),
  ),
  invoice: Type.Optional(Invoice),
})

const title = () =>
  Type.String({ description: 'What is paid for: 1 to 200 bytes of plain text.', examples: ['Two tickets'] })
const description = () =>
  Type.Optional(
    nullable(Type.String({ description: 'More about it: up to 1,000 bytes, shown to the buyer.' })),
  )
const amounts = {
  priceAmount: Type.Optional(
    Type.String({
      description:
        'A decimal above zero, as a string. Leave it out where the buyer chooses the amount, and for an invoice.',
      examples: ['25.00'],
    }),
  ),
  minAmount: Type.Optional(Type.String({ description: 'The least that the buyer may choose.' })),
  maxAmount: Type.Optional(Type.String({ description: 'The most that the buyer may choose.' })),
}
const until = () =>
  Type.String({
    format: 'date-time',
    description: 'Until when it can be paid, at most 400 days from now.',
    examples: ['2027-01-31T00:00:00Z'],
  })
const metadata = () =>
  Type.Optional(
    Type.Record(Type.String(), Type.String({ maxLength: metadataValueCharactersMax }), {
      maxProperties: metadataKeysMax,
      description: 'The store’s own values, which each checkout of the link gets. The buyer never sees them.',
    }),
  )

export const CreateLink = shape<Wire.CreateLink>()({
  kind: Type.Optional(Type.Enum(['once', 'many'], { default: 'once' })),
  title: title(),
  description: description(),
  ...amounts,
  priceCurrency: Type.String({ description: 'ISO 4217 code, in upper or lower case.', examples: ['USD'] }),
  until: until(),
  metadata: metadata(),
  invoice: Type.Optional(CreateInvoice),
})

export const UpdateLink = shape<Wire.UpdateLink>()(
  {
    title: Type.Optional(title()),
    description: description(),
    ...amounts,
    until: Type.Optional(until()),
    metadata: metadata(),
    status: Type.Optional(Type.Literal('CLOSED', { description: 'Closes the link for good.' })),
  },
  { minProperties: 1 },
)

const LinkPage = of<Wire.Page<Wire.Link>>()(pageOf(Link))

const LinkQuery = object({
  limit,
  cursor,
  status: Type.Optional(Type.Enum([...linkStatuses])),
  invoiceNumber: Type.Optional(
    Type.String({
      maxLength: 64,
      // PostgreSQL text cannot hold a zero character.
      pattern: '^[^\\u0000]+$',
      description: 'Only the invoice with this number.',
    }),
  ),
})

const oneLink = '/api/v1/links/:linkId'

/** Addresses that a store sends to its buyers. */
export function linkRoutes(): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/links',
      operationId: 'createLink',
      summary: 'Create a link or an invoice',
      description:
        'Send its url to buyers. A checkout is made when somebody wants to pay, so a link can be payable for longer than a checkout lives.',
      scope: 'checkouts:write',
      body: CreateLink,
      requestHeaders: {
        'Idempotency-Key':
          '1 to 255 visible ASCII characters. A repeat with the same bytes gets the same link in its current state.',
      },
      answers: {
        201: {
          description: 'Created, with status ACTIVE.',
          schema: Link,
          headers: {
            Location: 'The URL to read the link at.',
            'Idempotency-Replayed': 'true if an earlier request with this Idempotency-Key created it.',
          },
        },
      },
      problems: [
        'store_inactive',
        'wallet_required',
        'invoice_number_taken',
        'idempotency_in_progress',
        'idempotency_key_reused',
      ],
      handle: answer<Wire.CreateLink>(
        201,
        async ({ ctx, request, reply, caller, storeId, actor, input, now }) => {
          const idempotency = readIdempotencyKey(request, 'POST /api/v1/links')
          requirePayable(ctx, caller.holder)
          const { link, isReplay } = await createLink(ctx, storeId, actor, { input, idempotency }, now)
          reply.header('location', `${ctx.config.baseUrl}/api/v1/links/${link.id}`)
          if (isReplay) reply.header('idempotency-replayed', 'true')
          return link
        },
      ),
    },
    {
      method: 'GET',
      path: '/api/v1/links',
      operationId: 'listLinks',
      summary: 'List links, newest first',
      scope: 'checkouts:read',
      query: LinkQuery,
      answers: { 200: { description: 'One page.', schema: LinkPage } },
      problems: [],
      handle: answer<Static<typeof LinkQuery>>(200, ({ ctx, storeId, input }) =>
        listLinks(ctx, storeId, { limit: limitDefault, ...input }),
      ),
    },
    {
      method: 'GET',
      path: oneLink,
      operationId: 'getLink',
      summary: 'Read a link',
      scope: 'checkouts:read',
      answers: { 200: { description: 'The link.', schema: Link } },
      problems: ['not_found'],
      handle: answer(200, ({ ctx, storeId, param }) => readLink(ctx, storeId, param('linkId'))),
    },
    {
      method: 'PATCH',
      path: oneLink,
      operationId: 'updateLink',
      summary: 'Change or close a link',
      description:
        'Checkouts that nobody has begun to pay are canceled if the link is closed, or if its title, description or price changes. An invoice never changes, except for until, metadata and status.',
      scope: 'checkouts:write',
      body: UpdateLink,
      answers: { 200: { description: 'The link after the change.', schema: Link } },
      problems: ['not_found'],
      handle: answer<Wire.UpdateLink>(200, ({ ctx, storeId, actor, param, input, now }) =>
        updateLink(ctx, storeId, actor, { linkId: param('linkId'), input }, now),
      ),
    },
  ]
}
