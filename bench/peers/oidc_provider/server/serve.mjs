// Starts as many processes as the other servers have, all on the same port.
import cluster from 'node:cluster';
import { makeProvider } from './provider.mjs';

const port = Number(process.env.PORT);

if (cluster.isPrimary) {
  for (let each = 0; each < Number(process.env.WORKERS); each += 1) cluster.fork();
  process.on('SIGTERM', () => {
    for (const worker of Object.values(cluster.workers)) worker.kill();
    process.exit(0);
  });
} else {
  makeProvider(port).listen(port, '127.0.0.1');
}
