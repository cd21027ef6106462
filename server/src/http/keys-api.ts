import type { CreateApiKey, RotateApiKey } from '@farthing/sdk'
import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { invalid } from '../problems.ts'
import { createKey, isKeyId, type KeyMaker, type NewKey, revokeKey, rotateKey } from '../stores/api-keys.ts'
import { pageKeys } from '../stores/key-rows.ts'
import { keyToWire } from '../stores/store.ts'
import * as schemas from './key-schemas.ts'
import { caller, limitDefault, param, type Route, sendJson, storeOf } from './route.ts'
import { PageQuery } from './schemas.ts'

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
      body: schemas.CreateApiKey,
      answers: { 201: { description: 'The key with its secret.', schema: schemas.ApiKeySecret } },
      problems: ['key_too_wide', 'key_limit'],
      async handle(ctx, request, reply) {
        const body = (request.body ?? {}) as CreateApiKey
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
      answers: { 200: { description: 'One page.', schema: schemas.ApiKeyPage } },
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
      body: schemas.RotateApiKey,
      answers: { 201: { description: 'The key with its secret.', schema: schemas.ApiKeySecret } },
      problems: ['not_found', 'key_too_wide', 'key_limit'],
      async handle(ctx, request, reply) {
        const { overlapSeconds = overlapSecondsDefault } = (request.body ?? {}) as RotateApiKey
        const keyId = param(request, 'keyId')
        const made = await rotateKey(
          ctx,
          storeOf(request),
          makerOf(request),
          keyId,
          overlapSeconds,
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
      answers: { 200: { description: 'The revoked key.', schema: schemas.ApiKey } },
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
