import type * as Wire from '@farthing/sdk'
import Type, { type Static, type TObject, type TObjectOptions, type TProperties, type TSchema } from 'typebox'

/**
 * The shapes of requests and answers. They validate requests, are part of the OpenAPI document, and must match the SDK's
 * types: a mismatch doesn't compile.
 */
type Agrees<A, B> = [A] extends [B] ? ([B] extends [A] ? unknown : never) : never

export function of<Wanted>() {
  return <Schema extends TSchema>(schema: Schema & Agrees<Static<Schema>, Wanted>): Schema => schema
}

/** An object with these fields and no others. */
export function object<Fields extends TProperties>(fields: Fields, options: TObjectOptions = {}) {
  return Type.Object(fields, { additionalProperties: false, ...options })
}

/** The same, for a type of the SDK. */
export function shape<Wanted>() {
  return <Fields extends TProperties>(
    fields: Fields & Agrees<Static<TObject<Fields>>, Wanted>,
    options: TObjectOptions = {},
  ): TObject<Fields> => object<Fields>(fields, options)
}

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()])

export const timestamp = () => Type.String({ format: 'date-time' })

export const Actor = shape<Wire.Actor>()(
  {
    type: Type.Enum(['key', 'member', 'operator', 'system']),
    id: Type.String({ description: 'The id of the key or member, or the operator’s name.' }),
    name: nullable(Type.String({ description: 'The key’s label, or the person’s name.' })),
  },
  { description: 'Who caused it. Null for what payers, the chain or time caused.' },
)

export const webUrl = (description: string) => nullable(Type.String({ maxLength: 2048, description }))

export const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 }))

export const cursor = Type.Optional(
  Type.String({ maxLength: 100, description: 'The nextCursor of the previous page.' }),
)

const nextCursor = nullable(Type.String({ description: 'Null on the last page.' }))

/** One page of a list. */
export const pageOf = <Item extends TSchema>(item: Item) => object({ data: Type.Array(item), nextCursor })

export const PageQuery = object({ limit, cursor })

export const ProblemDetails = of<Wire.ProblemDetails>()(
  Type.Object({
    type: Type.String({ description: 'The URL of the page about this code.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'What went wrong in this request.' }),
    advice: Type.String({ description: 'What to do next.' }),
    code: Type.String({ description: 'Stable: programs should branch on it.' }),
    requestId: Type.String(),
    errors: Type.Optional(
      Type.Array(object({ pointer: Type.String(), code: Type.String(), detail: Type.String() }), {
        description:
          'With invalid_request: each wrong value, at most 20. The pointer is a JSON pointer into the body, or the name of a parameter or header.',
      }),
    ),
  }),
)
