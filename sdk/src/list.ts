import type { RequestOptions, Send } from './request.ts'
import type { Page } from './wire.ts'

/** A list, newest first. `for await` reads all of it, page by page; `page()` reads only the first page. */
export type List<Item> = AsyncIterable<Item> & { page(): Promise<Page<Item>> }

export type PageQuery = RequestOptions & {
  /** Items per page, 1 to 100. */
  readonly limit?: number
  /** `nextCursor` of the previous page. */
  readonly cursor?: string
}

/** The largest page the server allows, so that reading a whole list takes as few requests as possible. */
const limitMax = 100

export function openList<Item>(
  send: Send,
  path: string | (() => Promise<string>),
  { signal, ...query }: PageQuery = {},
): List<Item> {
  const read = async (change: Partial<PageQuery>) =>
    await send<Page<Item>>({
      method: 'GET',
      path: typeof path === 'string' ? path : await path(),
      query: { ...query, ...change } as Readonly<Record<string, string | number | undefined>>,
      isRepeatable: true,
      ...(signal && { signal }),
    })
  return {
    page: () => read({}),
    async *[Symbol.asyncIterator]() {
      const limit = query.limit ?? limitMax
      let page = await read({ limit })
      for (;;) {
        yield* page.data
        if (page.nextCursor === null) return
        page = await read({ limit, cursor: page.nextCursor })
      }
    },
  }
}
