import type * as Wire from '@farthing/sdk'
import Type from 'typebox'
import { addressesMax } from '../stores/addresses.ts'
import { presetNames, scopes } from '../stores/scopes.ts'
import { closed, nextCursor, nullable, of, timestamp } from './schemas.ts'

/** The shapes of API keys. */
const scope = () => Type.Enum([...scopes])

export const ApiKey = of<Wire.ApiKey>()(
  Type.Object(
    {
      id: Type.String(),
      label: nullable(Type.String({ description: 'What the store calls it.' })),
      scopes: Type.Array(scope(), { description: 'What it may do.' }),
      addresses: Type.Array(Type.String(), {
        description: 'The addresses or blocks (CIDR) it may be used from. Empty means any.',
      }),
      createdAt: timestamp(),
      lastUsedAt: nullable(Type.String({ format: 'date-time', description: 'To the hour.' })),
      expiresAt: nullable(timestamp()),
      revokedAt: nullable(timestamp()),
    },
    closed,
  ),
)
export const ApiKeySecret = of<Wire.ApiKeySecret>()(
  Type.Object(
    {
      ...ApiKey.properties,
      key: Type.String({
        description: 'What to send in X-API-Key. Shown only in this answer.',
        examples: ['sk_live_…'],
      }),
    },
    closed,
  ),
)
export const CreateApiKey = of<Wire.CreateApiKey>()(
  Type.Object(
    {
      label: Type.Optional(Type.String({ maxLength: 100 })),
      preset: Type.Optional(
        Type.Enum([...presetNames], {
          description:
            'full: everything. create: create, read and cancel checkouts. read: read everything. full if you send neither preset nor scopes.',
        }),
      ),
      scopes: Type.Optional(
        Type.Array(scope(), {
          minItems: 1,
          maxItems: scopes.length,
          description: 'Instead of a preset. A scope to write includes the one to read.',
        }),
      ),
      addresses: Type.Optional(
        Type.Array(Type.String({ maxLength: 50 }), {
          maxItems: addressesMax,
          description: 'The addresses or blocks (CIDR) that the key may be used from. Empty means any.',
        }),
      ),
    },
    closed,
  ),
)
export const RotateApiKey = of<Wire.RotateApiKey>()(
  Type.Object(
    {
      overlapSeconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 604_800,
          default: 86_400,
          description: 'How long the old key stays valid.',
        }),
      ),
    },
    closed,
  ),
)

export const ApiKeyPage = of<Wire.Page<Wire.ApiKey>>()(
  Type.Object({ data: Type.Array(ApiKey), nextCursor }, closed),
)
