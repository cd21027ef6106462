import { brotliCompressSync, constants } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Fast, and small enough: every request renders the page again. */
const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }

/** Sends a page, compressed where the browser takes it. */
export function sendCompressed(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply {
  if (!/\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''))) return reply.send(text)
  return reply.header('content-encoding', 'br').send(brotliCompressSync(text, brotli))
}
