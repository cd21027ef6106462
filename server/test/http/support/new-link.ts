const dayMs = 86_400_000

/** What creates a link. */
export function newLink(change: object = {}): object {
  const until = new Date(Date.now() + 7 * dayMs).toISOString()
  return { title: 'Two tickets', priceAmount: '25.00', priceCurrency: 'USD', until, ...change }
}

/** What creates an invoice with this number. */
export function newInvoice(number: string): object {
  const lines = [
    { text: 'Teapot', quantity: '1', unitAmount: '40.00', taxRate: '21' },
    { text: 'Tea, 100 g', quantity: '3', unitAmount: '4.95', taxRate: '10' },
  ]
  const buyer = { buyerName: 'Ana Díaz', buyerAddress: 'Calle Mayor 1\n28013 Madrid' }
  const invoice = { number, dueDate: '2026-12-31', taxIncluded: false, ...buyer, lines }
  return newLink({ title: 'Tea', priceAmount: undefined, invoice })
}
