import type { FastifyRequest } from 'fastify'

type Cookie = { readonly name: string; readonly value: string }

/** All cookies that the browser sent. It may send several with one name. */
export function readCookies({ headers }: FastifyRequest): Cookie[] {
  return (headers.cookie ?? '').split(';').map((pair) => {
    const [name = '', ...value] = pair.trim().split('=')
    return { name, value: value.join('=') }
  })
}

/** Null if there is none, or if there are two: then one of them is not ours. */
export function readCookie(request: FastifyRequest, name: string): string | null {
  const [found, ...more] = readCookies(request).filter((each) => each.name === name)
  return found && more.length === 0 ? found.value : null
}
