import { createClient, type Payment } from '@farthing/sdk'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import { answer } from '../answer.ts'
import type { Settings } from '../settings.ts'

/** A model reads the whole answer, so it must be short. */
const paymentsMax = 50

/** The store's side, for users who have the store's key in the environment. */
export function addListPayments(server: McpServer, { urls }: Settings, apiKey: string): void {
  const [baseUrl = ''] = urls
  const client = createClient({ apiKey, baseUrl })
  server.registerTool(
    'list_payments',
    {
      title: 'List payments to the store',
      description: 'Lists payments to the store’s wallets, newest first.',
      inputSchema: z.strictObject({
        limit: z.number().int().min(1).max(paymentsMax).default(20).describe('How many.'),
        checkoutId: z
          .string()
          .regex(/^ch_[0-9a-z]{28}$/)
          .optional()
          .describe('Only payments for this checkout.'),
      }),
      annotations: { readOnlyHint: true, openWorldHint: true },
    },
    async ({ limit, checkoutId }) => {
      const payments: Payment[] = []
      const query = { limit, ...(checkoutId !== undefined && { checkoutId }) }
      for await (const payment of client.payments.list(query)) if (payments.push(payment) >= limit) break
      return answer({ payments })
    },
  )
}
