import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import { refusal } from '../answer.ts'
import type { Settings } from '../settings.ts'

const timeoutMs = 15_000
/** About 25,000 tokens. The longest page has half of that. */
const charactersMax = 100_000

export function addReadDocs(server: McpServer, { urls }: Settings): void {
  const [home = ''] = urls
  server.registerTool(
    'read_docs',
    {
      title: 'Read the docs',
      description:
        'Reads the server’s docs in Markdown: /llms.txt lists the pages, each as a path such as /docs/x402.md.',
      inputSchema: z.strictObject({
        path: z
          .string()
          .regex(/^\/(llms\.txt|docs(\/[\w-]+)+\.md)$/)
          .default('/llms.txt')
          .describe('/llms.txt, or the path of a page in it.'),
      }),
      annotations: { readOnlyHint: true, openWorldHint: true },
    },
    async ({ path }) => {
      const found = await fetch(`${home}${path}`, {
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      })
      if (!found.ok) return refusal('not_found', `${path} does not exist. /llms.txt lists the pages.`)
      return { content: [{ type: 'text', text: (await found.text()).slice(0, charactersMax) }] }
    },
  )
}
