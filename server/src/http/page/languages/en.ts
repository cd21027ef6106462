export const english = {
  tag: 'en',
  direction: 'ltr' as const,
  name: 'English',
  texts: {
    title: 'Pay {amount} to {store}',
    payStore: 'Pay {store}',
    amountDue: 'Amount to pay',
    amountExpected: 'Amount expected',
    amountPaid: 'Amount paid',
    amount: 'Amount',
    price: 'Price',
    rate: 'Exchange rate',
    onNetwork: 'on {network}',
    order: 'Order',
    /** What is paid for, in the store's words. */
    description: 'Description',
    payTo: 'Pay to',
    paidTo: 'Paid to',
    network: 'Network',
    validUntil: 'Pay before',
    usdc: 'USDC is a digital dollar: one USDC is worth one US dollar.',
    direct: 'Your money goes straight to the store’s wallet.',
    testMode: 'Test: no real money',
    help: 'Questions? Contact the store and quote {checkout}.',
    languages: 'Languages',

    chooseWay: 'How would you like to pay?',
    ways: {
      wallet: 'Browser wallet',
      phone: 'Phone',
      app: 'Wallet app',
      send: 'Exchange or other wallet',
    },

    walletTitle: 'Pay with a wallet in this browser',
    walletAbout: 'You sign once in your wallet. You pay no network fee.',
    payWith: 'Pay with {wallet}',
    unnamedWallet: 'browser wallet',
    noWallet: 'We found no wallet in this browser.',
    /** Instead of wallets, if the network takes no signed payments now. */
    unsignable: 'This payment can’t be signed in a wallet on {network} right now.',
    usePhone: 'Use your phone',
    needsScript: 'Paying with a wallet in this browser needs JavaScript, which is turned off here.',

    phoneTitle: 'Pay with your phone',
    phoneAbout:
      'Scan this code with your phone’s camera. This page opens there, and you pay with the wallet on your phone. You pay no network fee.',
    appsTitle: 'Pay with a wallet app',
    appsAbout: 'Tap your wallet. This page opens inside it, and you sign once there. You pay no network fee.',
    qrPage: 'QR code that opens this page',
    qrAddress: 'QR code of the address to send to',
    qrPayment: 'QR code that opens this payment in a wallet',

    sendTitle: 'Pay from an exchange or another wallet',
    sendAbout:
      'We reserve an exact amount for you and show you the address to send it to. The amount can be a fraction of a cent above the price: that is how the store recognizes your payment. Your exchange or wallet may charge a fee of its own.',
    sendButton: 'Show amount and address',
    sendNetwork: 'Which network will you send on?',
    sendOther: 'Use another network',
    sendDo: 'Send exactly this amount to this address',
    sendExact: 'Send all the digits. They tell the store that this payment is yours.',
    sendLinked:
      'Pay with a wallet on this network, using this code or link. A transfer made any other way, such as from an exchange, can’t be linked to your order.',
    sendLink: 'Open in a wallet',
    sendAmount: 'Exact amount',
    sendAddress: 'Address',
    sendWarning: 'Send only {asset}, and only on {network}. Anything else may be lost.',
    sendFee:
      'If your exchange takes its fee out of the amount, add the fee on top: exactly this amount has to arrive.',
    sendCheck: 'After pasting, check the whole address, including the middle.',
    sendWatching: 'We’re watching for your transfer. You may close this page: the payment counts without it.',
    sentTitle: 'I’ve already sent it',
    sentAbout:
      'If you sent money for this payment, don’t send any more. Enter the transaction hash: we look for it and show it to the store, and the store decides whether to accept it or send it back.',
    hashTitle: 'Sent it but nothing happened?',
    hashAbout:
      'If a different amount arrived, we can’t tell that it’s yours. Don’t send again: enter the transaction hash, and the store will see it.',
    hashLabel: 'Transaction hash',
    hashButton: 'Find my payment',
    copy: 'Copy',
    copied: 'Copied',

    account: 'Your account',
    balance: 'It has',
    states: {
      connecting: { title: 'Connecting', text: 'Allow the connection in your wallet.' },
      switching: {
        title: 'Switch network',
        text: 'Your wallet is on another network. Allow it to switch to {network}.',
      },
      signing: {
        title: 'Sign in your wallet',
        text: 'Check that your wallet shows the same amount and address, then sign.',
      },
      again: {
        title: 'Please sign once more',
        text: 'On Solana a signature is good for half a minute, and this one came too late. Nothing was paid. Your wallet is asking again.',
      },
      settling: {
        title: 'Completing your payment',
        text: 'This takes a few seconds. You don’t need to sign anything else.',
      },
      rejected: {
        title: 'Nothing was paid',
        text: 'You declined the request in your wallet. You can try again.',
      },
      pending: {
        title: 'Your wallet is waiting for you',
        text: 'Your wallet already has a request open. Open the wallet and answer it, then try again.',
      },
      funds: {
        title: 'Not enough {asset}',
        text: 'This account doesn’t have {amount} {asset} on {network}. Add some, or choose another account. Nothing was paid.',
      },
      smart: {
        title: 'Your wallet can’t sign this payment',
        text: 'It doesn’t support this kind of signature. Nothing was paid. You can pay by an ordinary transfer: choose “Exchange or other wallet”.',
      },
      expired: {
        title: 'The time to sign ran out',
        text: 'On Solana a signature is good for half a minute. Nothing was paid. Choose your wallet again, and sign soon after it asks.',
      },
      undeployed: {
        title: 'Your smart wallet isn’t active on {network} yet',
        text: 'It becomes active with the first transaction you send from it. Nothing was paid. You can pay by an ordinary transfer, which also activates the wallet: choose “Exchange or other wallet”.',
      },
      chain: {
        title: 'Your wallet is not on {network}',
        text: 'Switch to {network} in your wallet, then try again. Nothing was paid.',
      },
      tab: {
        title: 'Continue in your other tab',
        text: 'This payment is open in another tab or window of this browser. Finish it there, or close that tab and try again here.',
      },
      changed: {
        title: 'This page is out of date',
        text: 'Nothing was paid. Reload the page before you pay.',
      },
      offline: {
        title: 'No connection',
        text: 'Your signed payment is saved here and will be sent as soon as the connection is back. Please don’t pay again.',
      },
      unavailable: {
        title: 'Just a moment',
        text: 'The service is busy. Your signed payment is saved here and will be sent again automatically. Please don’t pay again.',
      },
      failed: { title: 'That didn’t work', text: 'Nothing was paid. You can try again.' },
    },
    startOver: 'Start over',
    notices: {
      crowded:
        'Too many people are sending a similar amount right now. Pay with a wallet or your phone, or try again later.',
      in_progress: 'A payment is already being completed. Please don’t send anything.',
      closed: 'This payment is closed. Please don’t send anything.',
      unavailable: 'That isn’t possible right now. Please try again in a minute.',
      looking: 'We’re looking for your transaction. This page will update when we find it.',
      not_found: 'We can’t find that transaction on {network} yet. Check the hash, or try again in a minute.',
      invalid_hash: 'That isn’t a transaction hash. A hash starts with 0x and has 66 characters.',
      unmatched:
        'We found your transaction, but it doesn’t match this payment. We’ve shown it to the store, and the store will decide. Don’t send anything more.',
    },
    announced: {
      title: 'We’re looking for your payment',
      text: 'This page will update when we find your transaction. It can take a few minutes, and you may close this page. If it doesn’t match, the store decides. Please don’t pay again.',
    },
    notSent: 'I haven’t sent anything yet',
    arrived: {
      title: 'The store needs to look at your transfer',
      text: 'Please don’t send anything more until you’ve heard from the store.',
    },
    noteTitle: 'About the money you sent',
    notes: {
      late: '{amount} {asset} arrived after this payment was closed. We’ve told the store. They will decide.',
      underpaid:
        '{amount} {asset} arrived; {due} {asset} was expected. We’ve told the store. They will decide.',
      overpaid:
        '{amount} {asset} arrived. In total, that is more than the {due} {asset} expected. We’ve told the store. Ask them to return the difference.',
      unmatched:
        '{amount} {asset} arrived, but it couldn’t be linked to this order. We’ve told the store. They will decide.',
    },

    refund: 'Refund',
    refunds: {
      /** Instead of `completed`, once all of it is back. */
      whole: { title: 'Payment returned', text: '{store} has sent your payment back.' },
      part: '{store} has returned part of your payment.',
      /** Instead of a note, once the store has decided. */
      arrived: '{amount} {asset} arrived.',
      sent: '{amount} {asset} is on its way to {address}.',
      /** For a refund that the store sends by itself, until its transaction is found. */
      named: 'The store says it has sent {amount} {asset} to {address}. We’re looking for its transaction.',
      completed: '{amount} {asset} was returned to {address}.',
      declared:
        'The store says it has returned {amount} {asset}. We can’t see this ourselves: if nothing has arrived, ask the store.',
    },

    processing: {
      title: 'Your payment is on its way',
      text: 'You can close this page: the payment will go through without it. Please don’t pay again.',
    },
    completed: { title: 'Payment received', text: 'Thank you! {store} has been paid.' },
    expired: {
      title: 'This payment has expired',
      text: 'The time to pay is over, so please don’t send anything. Go back to the store if you’d still like to order.',
    },
    canceled: {
      title: 'This payment was canceled',
      text: 'The store has canceled it, so please don’t send anything.',
    },
    notFound: {
      title: 'We can’t find this payment',
      text: 'Check the address, or ask the store for a new link.',
    },
    unavailable: {
      title: 'We can’t show this page right now',
      text: 'The problem is on our side, and nothing is lost. Please reload the page in a minute. If you’ve already paid, don’t pay again.',
    },

    receipt: 'Receipt',
    date: 'Date and time',
    from: 'Paid from',
    transaction: 'Transaction',
    checkout: 'Payment reference',
    save: 'Save',
    mailIt: 'Mail it to me',
    returnTo: 'Back to {host}',
    /** The unit is the same for every number. */
    leaving: 'Returning to the store in {seconds} s.',
    stay: 'Stay here',
    checkAgain: 'Check again',

    /** The receipt, as it is printed, saved or mailed. */
    buyerReceipt: {
      number: 'Receipt number',
      date: 'Date',
      taxId: 'Tax number {number}',
      print: 'Print or save as PDF',
      back: 'Back to the payment',
      void: {
        title: 'This receipt is void',
        text: 'The network took the payment back, so this receipt no longer counts.',
      },
      waiting: {
        title: 'Your receipt is on its way',
        text: 'It gets its number in a moment. Please check again.',
      },
      email: 'Your email address',
      emailAbout: 'We use it for this one mail and don’t keep it.',
      send: 'Send',
      /** Below the form, after it was sent. */
      said: {
        taken: 'If this address has had no receipt from us within the last hour, the mail is on its way.',
        wrong: 'That isn’t an email address. Check it and try again.',
        unavailable: 'We can’t mail this receipt right now. Print or save it instead.',
      },
      store: 'Store',
      open: 'To print or save your receipt, open this page:',
      ignore:
        'Somebody entered your address on the page of this payment. If it wasn’t you, you can ignore this mail.',
    },

    /** The page of a link, on which nothing is paid yet. */
    link: {
      pay: 'Continue',
      about: 'Next you choose how to pay.',
      howMuch: 'How much would you like to pay?',
      between: 'Between {min} and {max}',
      mistake: 'Enter an amount between {min} and {max}, such as {example}.',
      outdated:
        'This page was open for a while, or the store has changed something. Please check it and continue.',
      paid: { title: 'This has been paid', text: 'There is nothing left to pay here.' },
      closed: { title: 'This link is closed', text: '{store} has closed it, so please don’t send anything.' },
      ended: {
        title: 'This link has ended',
        text: 'The time to pay is over, so please don’t send anything. Ask {store} for a new link.',
      },
      unpayable: {
        title: '{store} can’t be paid right now',
        text: 'Please try again later, or ask the store.',
      },
      invoice: 'Invoice',
      due: 'Due date',
      buyer: 'Billed to',
      line: 'Item',
      quantity: 'Quantity',
      each: 'Price each',
      taxRate: 'Tax',
      net: 'Net',
      tax: 'Tax {rate} %',
      total: 'Total',
    },

    /** The page on which a store asks a buyer where a refund should go. */
    addressRequest: {
      title: 'Refund from {store}',
      amount: 'Your refund',
      before: 'Answer before',
      help: 'Questions? Contact the store and quote {refund}.',
      ask: {
        title: 'Where should your refund go?',
        text: '{store} wants to return {amount} {asset} to you. Enter an address of your own on {network}.',
      },
      label: 'Your {asset} address on {network}',
      hint: 'In your wallet or exchange, choose to receive {asset} on {network} and copy the address shown there. Money sent to a wrong address is lost.',
      once: 'You can enter an address only once.',
      button: 'Use this address',
      mistakes: {
        empty: 'Enter the address that should receive your refund.',
        malformed: 'That isn’t the address of a wallet on {network}. Copy the whole address and try again.',
        refused: 'This address can’t receive your refund. Enter the address of a wallet of your own.',
        unavailable:
          'We couldn’t check the address just now, so nothing was saved. Please try again in a minute.',
      },
      named: {
        title: 'Last step: tell the store your code',
        text: 'Give this code to {store} the way you usually reach them. They send your refund once it matches.',
      },
      code: 'Your code',
      codeHint: 'Tell it to the store and to nobody else.',
      address: 'Your address',
      wrong: 'Wrong address? Don’t give out the code. Ask the store for a new link.',
      confirmed: {
        title: 'The store has confirmed your address',
        text: 'Your refund is sent next. You can close this page and come back later.',
      },
      returned: { title: 'Your refund has been sent', text: '{amount} {asset} went to your address.' },
      used: {
        title: 'This link has already been used',
        text: 'An address was entered in another browser. If that wasn’t you, tell {store} at once, and don’t confirm any code.',
      },
      expired: { title: 'This link has expired', text: 'Ask {store} for a new one.' },
      canceled: {
        title: 'This refund won’t be paid here',
        text: 'The store has canceled it or settled it in another way. If you expected it, ask {store}.',
      },
      unknown: {
        title: 'This link doesn’t work',
        text: 'Perhaps part of it is missing, or the store has sent you a newer one. Open the newest link, or ask the store.',
      },
      elsewhere: {
        title: 'Please open your link again',
        text: 'Open the link from the store in this browser. The page needs a cookie, so cookies must be allowed.',
      },
    },
  },
}
