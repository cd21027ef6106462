import type * as Wire from '@farthing/sdk'
import Type, { type Static } from 'typebox'
import {
  createKey,
  isKeyId,
  type KeyMaker,
  type NewKey,
  pageKeys,
  revokeKey,
  rotateKey,
} from '../../stores/api-keys.ts'
import type { Caller } from '../../stores/authenticate.ts'
import { addressesMax, presetNames, scopes } from '../../stores/scopes.ts'
import { keyToWire } from '../../stores/store.ts'
import { answer, cutPage, invalidCursor, limitDefault, type Route } from '../route.ts'
import { nullable, of, PageQuery, pageOf, shape, timestamp } from './shapes.ts'

const scope = () => Type.Enum([...scopes])

export const ApiKey = shape<Wire.ApiKey>()({
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
})
export const ApiKeySecret = shape<Wire.ApiKeySecret>()({
  ...ApiKey.properties,
  key: Type.String({
    description: 'What to send in X-API-Key. Shown only in this answer.',
    examples: ['sk_live_…'],
  }),
})
export const CreateApiKey = shape<Wire.CreateApiKey>()({
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
})
export const RotateApiKey = shape<Wire.RotateApiKey>()({
  overlapSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 604_800,
      default: 86_400,
      description: 'How long the old key stays valid.',
    }),
  ),
})

const ApiKeyPage = of<Wire.Page<Wire.ApiKey>>()(pageOf(ApiKey))

const overlapSecondsDefault = 86_400

/** The store's keys. A key can make, rotate and revoke only keys that may do no more than itself. */
export function keyRoutes(): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/keys',
      operationId: 'createKey',
      summary: 'Create an API key',
      description:
        'It may do what its preset or its scopes say, and no more than the key that creates it. The secret is shown only in this answer.',
      scope: 'keys:write',
      body: CreateApiKey,
      answers: { 201: { description: 'The key with its secret.', schema: ApiKeySecret } },
      problems: ['key_too_wide', 'key_limit'],
      handle: answer<Wire.CreateApiKey>(201, async ({ ctx, storeId, caller, input, now }) =>
        toWire(await createKey(ctx, storeId, makerOf(caller), input, now)),
      ),
    },
    {
      method: 'GET',
      path: '/api/v1/keys',
      operationId: 'listKeys',
      summary: 'List the store’s API keys, newest first',
      description: 'Includes revoked and expired keys. Secrets are left out.',
      scope: 'keys:read',
      query: PageQuery,
      answers: { 200: { description: 'One page.', schema: ApiKeyPage } },
      problems: [],
      handle: answer<Static<typeof PageQuery>>(200, async ({ ctx, storeId, input }) => {
        const { limit = limitDefault, cursor = null } = input
        if (cursor !== null && !isKeyId(cursor)) throw invalidCursor()
        const found = await pageKeys(ctx.db, storeId, { cursor, limit: limit + 1 })
        const { data, nextCursor } = cutPage(found, limit)
        return { data: data.map(keyToWire), nextCursor }
      }),
    },
    {
      method: 'POST',
      path: '/api/v1/keys/:keyId/rotate',
      operationId: 'rotateKey',
      summary: 'Replace an API key',
      description:
        'Creates a key with the same label, scopes and addresses. The old one expires after the overlap.',
      scope: 'keys:write',
      body: RotateApiKey,
      answers: { 201: { description: 'The key with its secret.', schema: ApiKeySecret } },
      problems: ['not_found', 'key_too_wide', 'key_limit'],
      handle: answer<Wire.RotateApiKey>(201, async ({ ctx, storeId, caller, param, input, now }) => {
        const { overlapSeconds = overlapSecondsDefault } = input
        const asked = { keyId: param('keyId'), overlapSeconds }
        return toWire(await rotateKey(ctx, storeId, makerOf(caller), asked, now))
      }),
    },
    {
      method: 'DELETE',
      path: '/api/v1/keys/:keyId',
      operationId: 'revokeKey',
      isUrgent: true,
      summary: 'Revoke an API key',
      description: 'At once. A key can revoke itself. Revoking it again changes nothing.',
      scope: 'keys:write',
      answers: { 200: { description: 'The revoked key.', schema: ApiKey } },
      problems: ['not_found', 'key_too_wide'],
      handle: answer(200, async ({ ctx, storeId, caller, param, now }) =>
        keyToWire(await revokeKey(ctx, storeId, makerOf(caller), param('keyId'), now)),
      ),
    },
  ]
}

function makerOf({ actor, holder }: Caller): KeyMaker {
  return { actor, limit: holder.key }
}

function toWire({ key, text }: NewKey) {
  return { ...keyToWire(key), key: text }
}
