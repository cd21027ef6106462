import type { StoreClient } from '../../support/store.ts'
import type { Call } from './call.ts'

/** Calls of every operation on keys, with the statuses that the document lists. */
export function keyCalls(shop: StoreClient): Readonly<Record<string, () => Promise<Call[]>>> {
  return {
    async createKey() {
      const { key } = (await shop.call('POST', '/api/v1/keys', { scopes: ['keys:write'] })).json()
      return [
        { status: 201, body: { label: 'till', preset: 'create', addresses: ['192.0.2.0/24'] } },
        { status: 201, body: { scopes: ['payments:write'] } },
        { status: 400, body: '{' },
        { status: 403, body: { preset: 'read' }, headers: { 'x-api-key': key } },
        { status: 415, body: 'x', headers: { 'content-type': 'text/plain' } },
        { status: 422, body: { preset: 'read', scopes: ['keys:read'] } },
      ]
    },
    listKeys: async () => [
      { status: 200 },
      { status: 200, query: '?limit=1' },
      { status: 422, query: '?limit=0' },
    ],
    async rotateKey() {
      const { id } = (await shop.call('POST', '/api/v1/keys', { preset: 'create' })).json()
      return [
        { status: 201, path: { keyId: id }, body: { overlapSeconds: 60 } },
        { status: 404, path: { keyId: 'x' }, body: {} },
        { status: 422, path: { keyId: id }, body: { overlapSeconds: -1 } },
      ]
    },
    async revokeKey() {
      const { id } = (await shop.call('POST', '/api/v1/keys', { preset: 'create' })).json()
      return [
        { status: 200, path: { keyId: id } },
        { status: 200, path: { keyId: id } },
        { status: 404, path: { keyId: 'x' } },
      ]
    },
  }
}
