import type * as Wire from '@farthing/sdk'
import type { FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { invalid } from '../../problems.ts'
import {
  createKey,
  isKeyId,
  type KeyMaker,
  type NewKey,
  pageKeys,
  revokeKey,
  rotateKey,
} from '../../stores/api-keys.ts'
import { addressesMax, presetNames, scopes } from '../../stores/scopes.ts'
import { keyToWire } from '../../stores/store.ts'
import { caller, limitDefault, param, type Route, sendJson, storeOf } from '../route.ts'
import { closed, nextCursor, nullable, of, PageQuery, timestamp } from './shapes.ts'

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

const ApiKeyPage = of<Wire.Page<Wire.ApiKey>>()(Type.Object({ data: Type.Array(ApiKey), nextCursor }, closed))

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
      async handle(ctx, request, reply) {
        const body = (request.body ?? {}) as Wire.CreateApiKey
        const made = await createKey(ctx, storeOf(request), makerOf(request), body, ctx.now())
        return sendJson(reply, 201, toWire(made))
      },
    },
    {
      method: 'GET',
      path: '/api/v1/keys',
      operationId: 'listKeys',
      summary: 'List the store’s API keys, newest first',
      description: 'With those that were revoked or have expired, and without secrets.',
      scope: 'keys:read',
      query: PageQuery,
      answers: { 200: { description: 'One page.', schema: ApiKeyPage } },
      problems: [],
      async handle(ctx, request, reply) {
        const { limit = limitDefault, cursor = null } = request.query as Static<typeof PageQuery>
        if (cursor !== null && !isKeyId(cursor))
          throw invalid({
            pointer: 'cursor',
            code: 'cursor',
            detail: 'Must be a cursor from an earlier answer.',
          })
        const found = await pageKeys(ctx.db, storeOf(request), { cursor, limit: limit + 1 })
        const page = found.slice(0, limit)
        return sendJson(reply, 200, {
          data: page.map(keyToWire),
          nextCursor: found.length > limit ? (page.at(-1)?.id ?? null) : null,
        })
      },
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
      async handle(ctx, request, reply) {
        const { overlapSeconds = overlapSecondsDefault } = (request.body ?? {}) as Wire.RotateApiKey
        const keyId = param(request, 'keyId')
        const made = await rotateKey(
          ctx,
          storeOf(request),
          makerOf(request),
          { keyId, overlapSeconds },
          ctx.now(),
        )
        return sendJson(reply, 201, toWire(made))
      },
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
      async handle(ctx, request, reply) {
        const keyId = param(request, 'keyId')
        const revoked = await revokeKey(ctx, storeOf(request), makerOf(request), keyId, ctx.now())
        return sendJson(reply, 200, keyToWire(revoked))
      },
    },
  ]
}

function makerOf(request: FastifyRequest): KeyMaker {
  const { actor, holder } = caller(request)
  return { actor, limit: holder.key }
}

function toWire({ key, text }: NewKey) {
  return { ...keyToWire(key), key: text }
}
